/* SPDX-License-Identifier: 0BSD */
/* Where the host stops a guest for a snapshot, and how it hands over what the guest is to do then: by two pages of a program, and no
 * device. One file of a program includes this.
 *
 * QEMU's debugger stub stops the machine at the first instruction of kdelta_snapshot_point. What is handed over comes in pieces:
 * whenever the mark JOB is executed, the plugin puts the next one into the page in which that mark stands. Neither takes any of the
 * guest's time.
 */
#ifndef KDELTA_HANDOVER_H
#define KDELTA_HANDOVER_H

#include <string.h>

#include "kdelta_clock.h"

#define KDELTA_RESYNC_NS 12000000 /* more than the 10 ms between two timer ticks at the lowest HZ */

#define KDELTA_PAGE_BYTES 4096
#define KDELTA_PIECE_AT 64 /* a little-endian u32 with the piece's size, and the piece */
#define KDELTA_PIECE_MAX_BYTES (KDELTA_PAGE_BYTES - KDELTA_PIECE_AT - sizeof(uint32_t))

/* A page of code that begins with the caller's instruction and holds nothing else. */
#define KDELTA_ALONE_IN_PAGE __attribute__((noinline, noclone, aligned(KDELTA_PAGE_BYTES)))
#ifdef KDELTA_NOP
#define KDELTA_REST_OF_PAGE KDELTA_JUMP " 1f\n\t.balign 4096\n1:"
#else
#define KDELTA_REST_OF_PAGE ""
#endif

/* The host finds it by its name. */
void kdelta_snapshot_point(void);

KDELTA_ALONE_IN_PAGE void kdelta_snapshot_point(void)
{
    __asm__ volatile(KDELTA_REST_OF_PAGE : : : "memory");
}

static KDELTA_ALONE_IN_PAGE void kdelta_ask(void)
{
    __asm__ volatile(KDELTA_JOB KDELTA_REST_OF_PAGE : : : "memory");
}

/* The CPU stops at that instruction, but QEMU's main loop stops the clock a little later by the host's time, and in between it may find
 * the CPU idle and let the virtual clock jump to the next timer, which is at most a tick of the kernel away. So both paths,
 * with the jump and without, are led to one moment after that timer, from which on all is the same. */
static inline void kdelta_snapshot(void)
{
    uint64_t meeting = kdelta_clock_now() + KDELTA_RESYNC_NS;

    kdelta_snapshot_point();
    kdelta_clock_burn_until(meeting);
}

/* The next piece, until the next call; 0 at the end, and more than KDELTA_PIECE_MAX_BYTES where the host does not answer. */
static inline size_t kdelta_next_piece(const uint8_t **piece)
{
    const uint8_t *page = (const uint8_t *)((uintptr_t)kdelta_ask & -(uintptr_t)KDELTA_PAGE_BYTES);
    uint32_t size;

    kdelta_ask();
    memcpy(&size, page + KDELTA_PIECE_AT, sizeof size);
    *piece = page + KDELTA_PIECE_AT + sizeof size;
    return size;
}

/* The program went well, and with it the guest's work: the host ends the machine, and nothing has to be cleaned up. */
static inline void kdelta_done(void)
{
    static const char result[] = "result\nexit 0";

    kdelta_message(result, sizeof result - 1);
    KDELTA_MARK(KDELTA_OFF);
}

#endif
