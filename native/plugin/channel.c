/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's own channel: no device, no interrupt, and no reader that could be slow. */
#include "channel.h"

#include <stdio.h>

#include "output.h"
#include "symbols.h"
#include "task.h"
#include "turns.h"

#define MESSAGE_MAX_BYTES (64u << 20)
#define JOB_PAGE_BYTES 4096u
#define JOB_PIECE_AT 64u

static struct bytes sent;
static struct task *sender;
static bool is_mixed; /* other tasks sent some of it, too */
static uint64_t dropped;
static FILE *job;
void (*channel_arm)(void);
void (*channel_off)(void);
bool channel_counting = true;

void channel_byte(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused)
{
    uint8_t byte = (uint8_t)vaddr;

    (void)vcpu, (void)info, (void)unused;
    if (!sent.size)
        sender = task_running();
    is_mixed |= sender != task_running();
    if (sent.size < MESSAGE_MAX_BYTES)
        bytes_add(&sent, &byte, 1);
    else
        dropped++;
}

bool channel_open_job(const char *path)
{
    job = fopen(path, "rb");
    if (!job)
        fprintf(stderr, "kdelta plugin: cannot read %s\n", path);
    return job;
}

/* The page of guest memory in which an instruction stands; NULL where it is none. */
void *channel_job_page(const struct qemu_plugin_insn *insn)
{
    uintptr_t at = (uintptr_t)qemu_plugin_insn_haddr(insn);

    return (void *)(at - at % JOB_PAGE_BYTES);
}

/* A little-endian size, and so many bytes; 0 at the end. The page's first bytes are the guest's code and stay as they are. */
void channel_job(unsigned int vcpu, void *page)
{
    uint8_t *piece = (uint8_t *)page + JOB_PIECE_AT;
    size_t size;

    (void)vcpu;
    if (!page)
        return;
    size = job ? fread(piece + 4, 1, JOB_PAGE_BYTES - JOB_PIECE_AT - 4, job) : 0;
    for (int i = 0; i < 4; i++)
        piece[i] = (uint8_t)(size >> 8 * i);
}

static void message(void)
{
    static const char kallsyms[] = "kallsyms\n";

    if (dropped)
        output_warning("a message was cut: bytes dropped", dropped);
    output_message(&sent);
    if (sent.size > sizeof kallsyms && !memcmp(sent.data, kallsyms, sizeof kallsyms - 1)) {
        symbols_load((const char *)sent.data + sizeof kallsyms - 1, sent.size - (sizeof kallsyms - 1));
        output_seen(); /* the snapshot that follows keeps what was executed until then */
    }
    dropped = 0;
}

static void begin(const struct site *site)
{
    if (site->block) {
        turns_shorten(true);
        region_begin((const char *)sent.data, sent.size, site);
    } else if (channel_counting) {
        output_warning("a region began before it was announced; it is not counted", 1);
    }
}

static void end(const struct site *site)
{
    if (!site->block)
        return;
    region_end(site);
    turns_shorten(false);
}

void channel_mark(unsigned int vcpu, void *data)
{
    const struct site *site = data;

    (void)vcpu;
    if (is_mixed && (site->mark == MARK_BEGIN || site->mark == MARK_MESSAGE))
        output_marks_at_once("a name or message", (const char *)sent.data, sent.size);
    switch (site->mark) {
    case MARK_ARM:
        if (channel_arm)
            channel_arm();
        return;
    case MARK_MESSAGE:
        message();
        break;
    case MARK_BEGIN:
        begin(site);
        break;
    case MARK_ITER:
        if (site->block)
            region_iteration(site);
        return;
    case MARK_END:
        end(site);
        return;
    case MARK_JOIN:
        task_join();
        return;
    case MARK_OFF:
        channel_off();
        return;
    default:
        return;
    }
    sent.size = 0;
    is_mixed = false;
}
