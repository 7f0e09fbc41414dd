/* SPDX-License-Identifier: 0BSD */
/* Marks by which a program tells kdelta what to measure. On hardware, or without kdelta, they do nothing.
 *
 *     #include "kdelta.h"
 *
 *     for (int i = 0; i < 10; i++)          // warm up: nothing outside a region is counted
 *         work();
 *     kdelta_begin("work");
 *     for (int i = 0; i < 100; i++) {
 *         work();
 *         kdelta_iter();                    // an iteration ends here, and the next one starts
 *     }
 *     kdelta_end();
 *
 * and then: kdelta run KERNEL -- ./program
 *
 * - A region belongs to the task that began it, and to the processes and threads which that task makes inside the region.
 *   What other tasks and interrupts do meanwhile is counted apart. A partner that was made before the region, such as the
 *   other end of a pipe, says that it belongs to the measured work: kdelta_join().
 * - One region at a time. The same name may come again; each pass is then a region of its own.
 * - Names have 1 to 255 bytes. A region without kdelta_iter() is one iteration.
 * - kdelta_message() hands bytes to the host; its first line is the type of the message.
 * - Two threads must not send (begin, message) at the same time: their bytes would mix.
 * - kdelta_begin() also asks for instrumentation. A program can do that earlier with kdelta_arm(), and must do it before a
 *   partner joins; a program that `kdelta run` starts is armed already.
 *
 * How it works, for those who port it: a mark is a NOP whose displacement holds 0x4b64 ("Kd") and the kind. A byte is sent by
 * a load of a tagged form from a table of 256 bytes: which byte it is, its address tells. So kdelta needs no device, no
 * system call and no register contents to see them. A region covers what is executed from its BEGIN mark, inclusive, to its
 * END mark, exclusive.
 */
#ifndef KDELTA_H
#define KDELTA_H

#ifdef __KERNEL__ /* a kernel module can have regions as well, on the time of the task that calls it */
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#if defined(__x86_64__) && defined(__GNUC__)

static const unsigned char kdelta_page[256] __attribute__((aligned(256), unused)) = {0};

#define KDELTA_ARM     "nopl 0x4b640001(%%rax)\n\t"
#define KDELTA_BEGIN   "nopl 0x4b640002(%%rax)\n\t"
#define KDELTA_ITER    "nopl 0x4b640003(%%rax)\n\t"
#define KDELTA_END     "nopl 0x4b640004(%%rax)\n\t"
#define KDELTA_JOIN    "nopl 0x4b640005(%%rax)\n\t"
#define KDELTA_MESSAGE "nopl 0x4b640006(%%rax)\n\t"
#define KDELTA_MARK(mark) __asm__ volatile(mark : : : "memory")

/* Bytes that the next mark uses: kdelta_begin's name, or a message sent piece by piece. */
static inline void kdelta_send(const void *bytes, size_t size)
{
    const unsigned char *p = (const unsigned char *)bytes, *end = p + size;
    const uintptr_t base = (uintptr_t)kdelta_page - 0x4b641000u;

#pragma GCC unroll 8
    for (; p != end; p++)
        __asm__ volatile("movzbl 0x4b641000(%%rax), %%ecx" : : "a"(base + *p) : "rcx");
}

#else

#define KDELTA_ARM
#define KDELTA_BEGIN
#define KDELTA_ITER
#define KDELTA_END
#define KDELTA_JOIN
#define KDELTA_MESSAGE
#define KDELTA_MARK(mark) ((void)0)

static inline void kdelta_send(const void *bytes, size_t size)
{
    (void)bytes, (void)size;
}

#endif

/* Instrumentation will be wanted soon. */
static inline void kdelta_arm(void)
{
    /* The jump ends QEMU's block, so that what follows is already translated with instrumentation. */
    KDELTA_MARK(KDELTA_ARM "jmp 1f\n1:");
}

/* What kdelta_begin does before its mark. */
static inline void kdelta_announce(const char *name)
{
    size_t size = 0;

    while (name[size])
        size++;
    kdelta_arm();
    kdelta_send(name, size);
}

static inline void kdelta_begin(const char *name)
{
    kdelta_announce(name);
    KDELTA_MARK(KDELTA_BEGIN);
}

static inline void kdelta_iter(void)
{
    KDELTA_MARK(KDELTA_ITER);
}

static inline void kdelta_end(void)
{
    KDELTA_MARK(KDELTA_END);
}

/* The calling task's work belongs to the regions of the task that measures. */
static inline void kdelta_join(void)
{
    KDELTA_MARK(KDELTA_JOIN);
}

static inline void kdelta_message(const void *bytes, size_t size)
{
    kdelta_send(bytes, size);
    KDELTA_MARK(KDELTA_MESSAGE);
}

#endif
