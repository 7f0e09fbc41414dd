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
 *   With a * before the region's name it has the work of all tasks, kernel threads too: what is done on anybody's time, as
 *   packets are forwarded, belongs to no task. Interrupts are still apart.
 * - One region at a time: a run in which a thread begins one while another thread is in one fails. The same name may come again;
 *   each pass is then a region of its own.
 * - Names have 1 to 255 bytes. "command" is kdelta's own, of the region around a whole program: a compiler that knows the name
 *   refuses it, else kdelta does. A region without kdelta_iter() is one iteration.
 * - kdelta_message() hands bytes to the host; its first line is the type of the message.
 * - Two threads must not send (begin, message) at the same time: their bytes would mix.
 * - kdelta_begin() also asks for instrumentation. A program can do that earlier with kdelta_arm(), and must do it before a
 *   partner joins; a program that `kdelta run` starts is armed already.
 *
 * It works in programs for x86-64, ARM (ARMv7, in ARM and Thumb code), arm64 and riscv64. Elsewhere all of it does nothing.
 *
 * How it works, for those who port it: a mark is a NOP that no compiler makes, with the kind of mark in it. A byte is sent by a load
 * of a tagged form from a table of 256 bytes: which byte it is, its address tells. So kdelta needs no device, no system call and no
 * register contents to see them. A region covers what is executed from its BEGIN mark, inclusive, to its END mark, exclusive.
 *
 *            a mark: a NOP with the kind K                     a byte: a load whose address is the table's and the byte
 *   x86-64   nopl 0x4b640000+K(%rax)                           movzbl 0x4b641000(%rax), %ecx
 *   ARM      e320f0c0+K, a hint without a meaning              ldrb ip, [ip, #-0]
 *   Thumb-2  f3af 80c0+K, the same                             ldrb.w ip, [ip, #-0]
 *   arm64    movz xzr, #0x4b60+K                               ldurb wzr, [xN, #0x4b]
 *   riscv64  sltiu zero, zero, 0x4b0+K, a hint for custom use  lbu zero, 0x4b6(xN)
 */
#ifndef KDELTA_H
#define KDELTA_H

#define KDELTA_WHOLE_PROGRAM "command"

#if defined(__GNUC__) && defined(__has_attribute)
#if __has_attribute(error)
#ifdef __cplusplus
extern "C"
#endif
__attribute__((error("the region command is kdelta's own: give this one another name"))) void kdelta_name_is_taken(void);
#define KDELTA_CHECK_NAME(name)                                                                                              \
    do {                                                                                                                     \
        if (__builtin_constant_p(__builtin_strcmp(name, KDELTA_WHOLE_PROGRAM)) && !__builtin_strcmp(name, KDELTA_WHOLE_PROGRAM)) \
            kdelta_name_is_taken();                                                                                          \
    } while (0)
#endif
#endif
#ifndef KDELTA_CHECK_NAME
#define KDELTA_CHECK_NAME(name) ((void)0)
#endif

#ifdef KDELTA_TIMED /* for a clock in place of kdelta */
#include "kdelta_timed.h"
#else

#ifdef __KERNEL__ /* a kernel module can have regions as well, on the time of the task that calls it */
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#if defined(__x86_64__) && defined(__GNUC__)

static const unsigned char kdelta_page[256] __attribute__((aligned(256), unused)) = {0};

#define KDELTA_NOP(kind) "nopl 0x4b640000+" #kind "(%%rax)\n\t"
#define KDELTA_JUMP "jmp"

static inline void kdelta_send_byte(uintptr_t address)
{
    __asm__ volatile("movzbl 0x4b641000(%%rax), %%ecx" : : "a"(address - 0x4b641000u) : "rcx");
}

#elif defined(__ARMEL__) && defined(__GNUC__) && __ARM_ARCH >= 7

static const unsigned char kdelta_page[256] __attribute__((aligned(256), unused)) = {0};

#ifdef __thumb__
#define KDELTA_NOP(kind) ".inst.w 0xf3af80c0+" #kind "\n\t"
#define KDELTA_LOAD ".inst.w 0xf81ccc00"
#else
#define KDELTA_NOP(kind) ".inst 0xe320f0c0+" #kind "\n\t"
#define KDELTA_LOAD ".inst 0xe55cc000"
#endif
#define KDELTA_JUMP "b"

static inline void kdelta_send_byte(uintptr_t address)
{
    register uintptr_t ip __asm__("ip") = address;

    __asm__ volatile(KDELTA_LOAD : "+r"(ip));
}

#elif defined(__AARCH64EL__) && defined(__GNUC__)

static const unsigned char kdelta_page[256] __attribute__((aligned(256), unused)) = {0};

#define KDELTA_NOP(kind) "movz xzr, #0x4b60+" #kind "\n\t"
#define KDELTA_JUMP "b"

static inline void kdelta_send_byte(uintptr_t address)
{
    __asm__ volatile("ldurb wzr, [%0, #0x4b]" : : "r"(address - 0x4bu));
}

#elif defined(__riscv) && __riscv_xlen == 64 && defined(__GNUC__)

static const unsigned char kdelta_page[256] __attribute__((aligned(256), unused)) = {0};

#define KDELTA_NOP(kind) "sltiu zero, zero, 0x4b0+" #kind "\n\t"
#define KDELTA_JUMP "j"

static inline void kdelta_send_byte(uintptr_t address)
{
    __asm__ volatile("lbu zero, 0x4b6(%0)" : : "r"(address - 0x4b6u));
}

#endif

#ifdef KDELTA_NOP

#define KDELTA_ARM     KDELTA_NOP(1)
#define KDELTA_BEGIN   KDELTA_NOP(2)
#define KDELTA_ITER    KDELTA_NOP(3)
#define KDELTA_END     KDELTA_NOP(4)
#define KDELTA_JOIN    KDELTA_NOP(5)
#define KDELTA_MESSAGE KDELTA_NOP(6)
#define KDELTA_JOB     KDELTA_NOP(7) /* this and the next one are for kdelta's own init */
#define KDELTA_OFF     KDELTA_NOP(8)
/* Ends QEMU's block, so that what follows is translated only after the mark before it was executed. */
#define KDELTA_NEXT_BLOCK KDELTA_JUMP " 1f\n1:"
#define KDELTA_MARK(mark) __asm__ volatile(mark : : : "memory")

/* Bytes that the next mark uses: kdelta_begin's name, or a message sent piece by piece. */
static inline void kdelta_send(const void *bytes, size_t size)
{
    const unsigned char *p = (const unsigned char *)bytes, *end = p + size;

#pragma GCC unroll 8
    for (; p != end; p++)
        kdelta_send_byte((uintptr_t)kdelta_page + *p);
}

#else

#define KDELTA_ARM
#define KDELTA_BEGIN
#define KDELTA_ITER
#define KDELTA_END
#define KDELTA_JOIN
#define KDELTA_MESSAGE
#define KDELTA_JOB
#define KDELTA_OFF
#define KDELTA_NEXT_BLOCK
#define KDELTA_MARK(mark) ((void)0)

static inline void kdelta_send(const void *bytes, size_t size)
{
    (void)bytes, (void)size;
}

#endif

/* Instrumentation will be wanted soon. */
static inline void kdelta_arm(void)
{
    KDELTA_MARK(KDELTA_ARM KDELTA_NEXT_BLOCK);
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
    KDELTA_CHECK_NAME(name);
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

/* The calling task's work belongs to the regions of the task that measures, and that of all tasks which it makes from then on: a
 * server joins before it is executed. */
static inline void kdelta_join(void)
{
    KDELTA_MARK(KDELTA_JOIN);
}

static inline void kdelta_message(const void *bytes, size_t size)
{
    kdelta_send(bytes, size);
    KDELTA_MARK(KDELTA_MESSAGE);
}

#endif /* KDELTA_TIMED */

#endif
