/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the host stops the guest for its snapshot, and how it hands over the job: by two pages of this program, and no device.
 *
 * QEMU's debugger stub stops the machine at the first instruction of kdelta_snapshot_point. The job comes in pieces: whenever the mark
 * JOB is executed, the plugin puts the next one into the page in which that mark stands. Neither takes any of the guest's time.
 */
#include "agent.h"

#include <string.h>

#include "kdelta_clock.h"

#define RESYNC_NS 12000000 /* more than the 10 ms between two timer ticks at the lowest HZ */

#define PAGE_BYTES 4096
#define PIECE_AT 64 /* a little-endian u32 with the piece's size, and the piece */
#define PIECE_MAX_BYTES (PAGE_BYTES - PIECE_AT - sizeof(uint32_t))

/* A page of code that begins with the caller's instruction and holds nothing else. */
#define ALONE_IN_PAGE __attribute__((noinline, noclone, aligned(PAGE_BYTES)))
#define REST_OF_PAGE KDELTA_JUMP " 1f\n\t.balign 4096\n1:"

/* The host finds it by its name. */
void kdelta_snapshot_point(void);

ALONE_IN_PAGE void kdelta_snapshot_point(void)
{
    __asm__ volatile(REST_OF_PAGE : : : "memory");
}

ALONE_IN_PAGE static void ask(void)
{
    __asm__ volatile(KDELTA_JOB REST_OF_PAGE : : : "memory");
}

/* The CPU stops at that instruction, but QEMU's main loop stops the clock a little later by the host's time, and in between it may find
 * the CPU idle and let the virtual clock jump to the next timer, which is at most a tick of the kernel away. So both paths,
 * with the jump and without, are led to one moment after that timer, from which on all is the same. */
void snapshot_point(void)
{
    uint64_t meeting = kdelta_clock_now() + RESYNC_NS;

    kdelta_snapshot_point();
    kdelta_clock_burn_until(meeting);
}

static bool fill(struct stream *stream)
{
    const uint8_t *page = (const uint8_t *)((uintptr_t)ask & -(uintptr_t)PAGE_BYTES);
    uint32_t size;

    ask();
    memcpy(&size, page + PIECE_AT, sizeof size);
    if (size > PIECE_MAX_BYTES)
        finish("agent the host did not answer: kdelta's plugin is missing");
    stream->data = page + PIECE_AT + sizeof size;
    stream->size = size;
    return size;
}

struct stream job_stream(void)
{
    return (struct stream){.fill = fill};
}
