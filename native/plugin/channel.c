/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's own channel: no device, no interrupt, and nobody who could be slow to read it. */
#include "channel.h"

#include "output.h"
#include "symbols.h"
#include "task.h"

#define MESSAGE_MAX_BYTES (64u << 20)

static struct bytes sent;
static uint64_t dropped;
void (*channel_arm)(void);
bool channel_counting = true;

void channel_byte(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused)
{
    uint8_t byte = (uint8_t)vaddr;

    (void)vcpu, (void)info, (void)unused;
    if (sent.size < MESSAGE_MAX_BYTES)
        bytes_add(&sent, &byte, 1);
    else
        dropped++;
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

void channel_mark(unsigned int vcpu, void *data)
{
    const struct site *site = data;

    (void)vcpu;
    switch (site->mark) {
    case MARK_ARM:
        if (channel_arm)
            channel_arm();
        return;
    case MARK_MESSAGE:
        message();
        break;
    case MARK_BEGIN:
        if (site->block)
            region_begin((const char *)sent.data, sent.size, site);
        else if (channel_counting)
            output_warning("a region began before it was announced; it is not counted", 1);
        break;
    case MARK_ITER:
    case MARK_END:
        if (site->block)
            (site->mark == MARK_ITER ? region_iteration : region_end)(site);
        return;
    case MARK_JOIN:
        task_join();
        return;
    default:
        return;
    }
    sent.size = 0;
}
