/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls and the clock without a C library: for programs that are to run on any board, and be small. */
#ifndef KDELTA_TIMED_SYSTEM_H
#define KDELTA_TIMED_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
enum { NR_WRITE = 1, NR_READ = 0, NR_OPENAT = 257, NR_CLOSE = 3, NR_EXIT = 60, NR_SETAFFINITY = 203, NR_GETAFFINITY = 204 };
#define CLOCK_NAME "tsc"

static inline long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* What came before has been executed, and what comes after has not begun. */
static inline uint64_t clock_ticks(void)
{
    uint32_t low, high;

    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

#elif defined(__aarch64__)
enum { NR_WRITE = 64, NR_READ = 63, NR_OPENAT = 56, NR_CLOSE = 57, NR_EXIT = 93, NR_SETAFFINITY = 122, NR_GETAFFINITY = 123 };
#define CLOCK_NAME "cntvct"

static inline long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;

    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

static inline uint64_t clock_ticks(void)
{
    uint64_t ticks;

    __asm__ volatile("dsb sy\n\tisb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
    return ticks;
}

#elif defined(__arm__)
enum { NR_WRITE = 4, NR_READ = 3, NR_OPENAT = 322, NR_CLOSE = 6, NR_EXIT = 1, NR_SETAFFINITY = 241, NR_GETAFFINITY = 242,
       NR_CLOCK_GETTIME = 263 };
#define CLOCK_NAME "clock_gettime"

static inline long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    /* r7 may be the frame pointer, which the compiler then does not give away. */
    register long r0 __asm__("r0") = a, r1 __asm__("r1") = b, r2 __asm__("r2") = c;
    register long r3 __asm__("r3") = d, r4 __asm__("r4") = e, r5 __asm__("r5") = f;

    __asm__ volatile("mov ip, r7\n\tmov r7, %1\n\tsvc #0\n\tmov r7, ip"
                     : "+r"(r0)
                     : "r"(number), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5)
                     : "ip", "memory");
    return r0;
}

/* No counter that every ARMv7 core has and lets programs read: the kernel's monotonic clock, in ns. */
static inline uint64_t clock_ticks(void)
{
    int32_t time[2] = {0, 0};

    __asm__ volatile("dsb\n\tisb" : : : "memory");
    system_call(NR_CLOCK_GETTIME, 4 /* CLOCK_MONOTONIC_RAW */, (long)time, 0, 0, 0, 0);
    return (uint64_t)(uint32_t)time[0] * 1000000000u + (uint32_t)time[1];
}

#elif defined(__riscv) && __riscv_xlen == 64
enum { NR_WRITE = 64, NR_READ = 63, NR_OPENAT = 56, NR_CLOSE = 57, NR_EXIT = 93, NR_SETAFFINITY = 122, NR_GETAFFINITY = 123 };
#define CLOCK_NAME "rdtime"

static inline long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
    register long a3 __asm__("a3") = d, a4 __asm__("a4") = e, a5 __asm__("a5") = f;

    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
    return a0;
}

/* rdcycle is not for programs since Linux 6.6. */
static inline uint64_t clock_ticks(void)
{
    uint64_t ticks;

    __asm__ volatile("fence\n\trdtime %0\n\tfence" : "=r"(ticks) : : "memory");
    return ticks;
}
#else
#error "no clock for this architecture"
#endif

enum { AT_THIS_FOLDER = -100 };

static inline long system_pin(long core)
{
    unsigned long mask[16] = {0}, bits = 8 * sizeof mask[0];

    if (core < 0 || (unsigned long)core >= 16 * bits)
        return -1;
    mask[(unsigned long)core / bits] |= 1ul << (unsigned long)core % bits;
    return system_call(NR_SETAFFINITY, 0, sizeof mask, (long)mask, 0, 0, 0);
}

/* Text that is written when the buffer is full, and at the end. */
static char system_text[4096];
static size_t system_text_size;

static inline void say_all(void)
{
    for (size_t done = 0; done < system_text_size;) {
        long written = system_call(NR_WRITE, 1, (long)(system_text + done), (long)(system_text_size - done), 0, 0, 0);

        if (written <= 0)
            system_call(NR_EXIT, 4, 0, 0, 0, 0, 0);
        done += (size_t)written;
    }
    system_text_size = 0;
}

static inline void say(const char *text)
{
    while (*text) {
        if (system_text_size == sizeof system_text)
            say_all();
        system_text[system_text_size++] = *text++;
    }
}

/* Digits by subtraction: a division of 64 bits would want a library on 32-bit machines. */
static inline void say_number(uint64_t n)
{
    static const uint64_t powers[] = {
        10000000000000000000u, 1000000000000000000, 100000000000000000, 10000000000000000, 1000000000000000, 100000000000000,
        10000000000000, 1000000000000, 100000000000, 10000000000, 1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1,
    };
    char digits[21];
    size_t size = 0;

    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++) {
        char digit = '0';

        for (; n >= powers[i]; n -= powers[i])
            digit++;
        if (size || digit != '0' || i == sizeof powers / sizeof powers[0] - 1)
            digits[size++] = digit;
    }
    digits[size] = 0;
    say(digits);
}

static inline int same_text(const char *a, const char *b)
{
    for (; *a && *a == *b; a++, b++)
        ;
    return *a == *b;
}

/* A whole number; -1 if it is none. */
static inline long number_of(const char *text)
{
    long n = 0;

    if (!text || !*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || n > 100000000)
            return -1;
        n = n * 10 + (*text - '0');
    }
    return n;
}

#endif
