/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was rewritten and what was left, on stderr and for tests; and how a program ends that must not go on. */
#include <string.h>
#include <sys/syscall.h>

#include "call.h"

#define LINE_BYTES 512
#define FAILED 125 /* as `env` and `timeout` end when they themselves kc_fail */

__attribute__((visibility("default"))) struct kdelta_call_report kdelta_call_report;

static const char *const REASONS[SITE_STATES] = {
    [SITE_SIGRETURN] = "return from a signal",
    [SITE_NO_UNIT] = "without unwind information",
    [SITE_UNREADABLE] = "after an unknown instruction",
    [SITE_NO_ROOM] = "without room for a jump",
    [SITE_VDSO] = "in the kernel's own code",
};

struct line {
    char text[LINE_BYTES];
    unsigned used;
};

static void say(struct line *line, const char *text)
{
    for (; *text && line->used < LINE_BYTES - 1; text++)
        line->text[line->used++] = *text;
}

static void say_number(struct line *line, unsigned number)
{
    char digits[12];
    char *at = digits + sizeof(digits) - 1;

    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    say(line, at);
}

static void say_address(struct line *line, uint64_t address)
{
    char digits[20] = "0x";
    unsigned used = 2;

    for (int shift = 60; shift >= 0; shift -= 4)
        if (address >> shift || !shift)
            digits[used++] = "0123456789abcdef"[address >> shift & 15];
    digits[used] = '\0';
    say(line, digits);
}

static void end_line(struct line *line)
{
    line->text[line->used++] = '\n';
    kc_raw_call(SYS_write, 2, (long)line->text, line->used, 0, 0, 0);
    line->used = 0;
}

static void say_counts(struct line *line, const uint32_t *by_state)
{
    uint32_t rewritten = by_state[SITE_JUMPS] + by_state[SITE_HOPS], sites = 0;

    for (unsigned state = 0; state < SITE_STATES; state++)
        sites += by_state[state];
    say_number(line, rewritten);
    say(line, " of ");
    say_number(line, sites);
    say(line, " sites rewritten");
    for (unsigned state = 0; state < SITE_STATES; state++) {
        if (!REASONS[state] || !by_state[state])
            continue;
        say(line, "; left ");
        say_number(line, by_state[state]);
        say(line, " ");
        say(line, REASONS[state]);
    }
}

void kc_report_left(const struct module *module, const struct site *site)
{
    struct line line = {.used = 0};

    if (!REASONS[site->state])
        return;
    say(&line, "kdelta call: ");
    say(&line, module->name);
    say(&line, ": left ");
    say_address(&line, (uint64_t)(site->at - module->base));
    say(&line, ", ");
    say(&line, REASONS[site->state]);
    end_line(&line);
}

void kc_report_sites(const struct module *module, const uint32_t *by_state, enum talk talk)
{
    struct kdelta_call_report *all = &kdelta_call_report;
    struct line line = {.used = 0};

    uint32_t sites = 0;

    for (unsigned state = 0; state < SITE_STATES; state++) {
        all->by_state[state] += by_state[state];
        sites += by_state[state];
    }
    all->modules += sites > 0;
    all->sites += sites;
    all->rewritten += by_state[SITE_JUMPS] + by_state[SITE_HOPS];
    if (!talk || !sites)
        return;
    say(&line, "kdelta call: ");
    say(&line, module->name);
    say(&line, ": ");
    say_counts(&line, by_state);
    end_line(&line);
}

void kc_report_end(const char *mode, enum talk talk)
{
    struct line line = {.used = 0};

    if (!talk)
        return;
    say(&line, "kdelta call: ");
    say(&line, mode);
    say(&line, ": ");
    say_counts(&line, kdelta_call_report.by_state);
    end_line(&line);
}

_Noreturn void kc_fail(const char *what, const char *more)
{
    struct line line = {.used = 0};

    say(&line, "kdelta call: ");
    say(&line, what);
    if (more) {
        say(&line, ": ");
        say(&line, more);
    }
    end_line(&line);
    for (;;)
        kc_raw_call(SYS_exit_group, FAILED, 0, 0, 0, 0, 0);
}
