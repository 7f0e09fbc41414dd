/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A lock between a CPU that halts and QEMU's main loop.
 *
 * With -icount sleep=off the main loop lets the time of an idle CPU pass: in each of its rounds it moves the virtual clock on to the next
 * timer if the CPU is halted (icount_start_warp_timer in QEMU's sources). The CPU counts as halted from within the halting instruction on,
 * but the clock gets the instructions that it executed before only when it has left the translated code (icount_process_data). A round in
 * between, which is a matter of the host's scheduling, reads a clock that is behind, and moves it too far by these instructions. Later
 * timers then expire at other moments than in other runs, and interrupts come some instructions sooner or later.
 *
 * So here a round and the way into a halt exclude each other. A GLib source is asked before the main loop waits for events, which ends a
 * round, and after it, which begins one; in a round the main loop holds QEMU's global lock. A round that finds the CPU on its way into a
 * halt waits until the CPU sleeps: it needs the global lock when its instructions are in the clock. A CPU that wants to halt waits until
 * the round has ended.
 */
#define _GNU_SOURCE
#include "halt.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "glib_api.h"
#include "memory.h"

#define SOURCE_BYTES 256 /* of GLib's own structure at least */
/* How often a main loop in a round must be found asleep, one time after the other, to be taken to wait for the CPU. */
#define ASLEEP_LOOKS 1000
#define LOOK_NS 100000
#define QUICK_LOOKS 1000 /* before the main loop sleeps between looks */

/* What the CPU or the main loop is in; higher values are halts, each with a number of its own. */
enum { NEITHER, IN_ROUND, FIRST_HALT };

static struct {
    _Atomic uint64_t state;
    _Atomic bool asked;          /* whether the main loop ever began a round */
    _Atomic pid_t main, cpu;     /* threads */
    uint64_t halts;
} halt;

static const char *const *special_names;

bool halt_is(const struct insn_facts *facts)
{
    const char *name = special_names[facts->special];

    return !strcmp(name, "hlt") || !strcmp(name, "mwait") || !strcmp(name, "wfi");
}

/* Whether a thread of this process waits for something other than a processor. */
static bool is_asleep(pid_t thread)
{
    char path[64], text[256];
    int file;
    ssize_t n;
    const char *name_end;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    n = read(file, text, sizeof text - 1);
    close(file);
    text[n > 0 ? n : 0] = 0;
    name_end = strrchr(text, ')');
    return name_end && !strncmp(name_end, ") S", 3);
}

/* Until the CPU's thread sleeps. If it goes on at once instead, since an interrupt was pending, it comes to that at the end of its slice,
 * which is at the next timer, when it needs the global lock. How long this takes says nothing: the host may be a virtual machine.
 */
static void await_sleep(void)
{
    for (unsigned looks = 0; !is_asleep(halt.cpu); looks++) {
        if (looks < QUICK_LOOKS)
            sched_yield();
        else
            nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
    }
}

/* In the main loop, which has waited for events and has taken the global lock. */
static int round_begins(glib_source *source)
{
    uint64_t state = NEITHER;

    (void)source;
    atomic_store(&halt.main, (pid_t)syscall(SYS_gettid));
    atomic_store(&halt.asked, true);
    while (!atomic_compare_exchange_weak(&halt.state, &state, IN_ROUND) && state != IN_ROUND)
        if (state >= FIRST_HALT)
            await_sleep();
    return 0;
}

/* In the main loop, which is about to leave the global lock and to wait for events. */
static int round_ends(glib_source *source, int *timeout_ms)
{
    uint64_t state = IN_ROUND;

    (void)source;
    *timeout_ms = -1;
    atomic_compare_exchange_strong(&halt.state, &state, NEITHER);
    return 0;
}

/* Never asked, since neither of these has found an event. */
static int dispatch(glib_source *source, int (*callback)(void *data), void *data)
{
    (void)source, (void)callback, (void)data;
    return 1;
}

void halt_init(const struct arch *arch)
{
    static struct glib_source_functions functions = { .prepare = round_ends, .check = round_begins, .dispatch = dispatch };
    glib_source *source = must(g_source_new(&functions, SOURCE_BYTES));

    special_names = arch->special_names;
    g_source_set_priority(source, INT_MIN); /* before any source whose event would be the only one that is looked at */
    g_source_attach(source, NULL);
}

static _Noreturn void refuse(const char *why)
{
    fprintf(stderr, "kdelta plugin: %s: the run might not repeat\n", why);
    _exit(1);
}

void halt_begins(unsigned int vcpu, void *unused)
{
    unsigned asleep = 0;
    uint64_t state = NEITHER;

    (void)vcpu, (void)unused;
    if (!halt.asked)
        refuse("QEMU's main loop does not ask GLib's sources");
    atomic_store(&halt.cpu, (pid_t)syscall(SYS_gettid));
    halt.halts++;
    while (!atomic_compare_exchange_weak(&halt.state, &state, FIRST_HALT + halt.halts)) {
        if (state != IN_ROUND)
            continue;
        state = NEITHER;
        if (!is_asleep(halt.main)) {
            asleep = 0;
            sched_yield();
        } else if (++asleep < ASLEEP_LOOKS) {
            nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
        } else {
            refuse("QEMU's main loop waits for a CPU that is about to halt");
        }
    }
}
