/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The start of a program without a C library. Its stack is its own, at the same place within a page in each process and each link: the
 * kernel's begins where the environment and chance put it. */
#ifndef KDELTA_TIMED_START_H
#define KDELTA_TIMED_START_H

#include "system.h"

int main(int argc, char **argv);

__attribute__((aligned(4096), used)) char start_stack[16384];

__attribute__((used, noreturn, section(".text"))) void start_main(uintptr_t *stack)
{
    system_call(NR_EXIT, main((int)stack[0], (char **)(stack + 1)), 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

#if defined(__x86_64__)
__asm__(".text\n.globl _start\n_start:\n\tmov %rsp, %rdi\n\tlea start_stack+16384(%rip), %rsp\n\txor %ebp, %ebp\n\tcall start_main\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl _start\n_start:\n\tmov x0, sp\n\tadrp x1, start_stack+16384\n\tadd x1, x1, :lo12:start_stack+16384\n\tmov sp, x1\n"
        "\tbl start_main\n");
#elif defined(__arm__)
__asm__(".text\n.syntax unified\n.thumb\n.thumb_func\n.globl _start\n.type _start, %function\n_start:\n\tmov r0, sp\n\tldr r1, 1f\n"
        "\tmov sp, r1\n\tbl start_main\n"
        ".p2align 2\n1:\t.word start_stack+16384\n");
#else
__asm__(".text\n.globl _start\n_start:\n\tmv a0, sp\n\tla sp, start_stack+16384\n\tcall start_main\n");
#endif

/* What compilers call on their own. */
void *memset(void *to, int value, size_t n)
{
    volatile char *at = to;

    while (n--)
        *at++ = (char)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
    volatile char *at = to;

    for (const char *byte = from; n--;)
        *at++ = *byte++;
    return to;
}

#endif
