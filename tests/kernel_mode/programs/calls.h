/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The three ways to call the kernel: `syscall`, a jump to its entry, and a jump to the fast entry. */
#ifndef CALLS_H
#define CALLS_H

#include "proof.h"

enum way { WAY_SYSCALL, WAY_ENTRY, WAY_FAST, WAYS };
static const char *const way_names[WAYS] = { "syscall", "entry", "fast" };
static struct { uint64_t syscall, call; } entries;

/* How many of the ways this process has: one in user mode. */
__attribute__((unused)) static int ways(void)
{
	if (prctl(PR_KERNEL_MODE, KERNEL_MODE_ENTRIES, &entries, 0, 0))
		return 1;
	return entries.call ? WAYS : WAY_FAST;
}

/* Of two bytes before the return address the kernel goes back when it restarts a call. */
static inline long call6(enum way way, long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	if (way == WAY_SYSCALL)
		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
				 : "rcx", "r11", "memory", "cc");
	else if (way == WAY_ENTRY)
		__asm__ volatile("cli\n\tlea 1f(%%rip), %%rcx\n\tmov $0x202, %%r11d\n\t"
				 "jmp *%[entry]\n\tsyscall\n1:"
				 : "=a"(result)
				 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9),
				   [entry] "m"(entries.syscall)
				 : "rcx", "r11", "memory", "cc");
	else
		__asm__ volatile("lea 1f(%%rip), %%rcx\n\tjmp *%[entry]\n\tsyscall\n1:"
				 : "=a"(result)
				 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9),
				   [entry] "m"(entries.call)
				 : "rcx", "r11", "memory", "cc");
	return result;
}

#define call0(way, nr) call6(way, nr, 0, 0, 0, 0, 0, 0)
#define call1(way, nr, a) call6(way, nr, (long)(a), 0, 0, 0, 0, 0)
#define call2(way, nr, a, b) call6(way, nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define call3(way, nr, a, b, c) call6(way, nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define call4(way, nr, a, b, c, d) \
	call6(way, nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/* check() with the way in the name. */
#define check_way(way, name, held, ...)                                            \
	({                                                                         \
		char full[128];                                                    \
		snprintf(full, sizeof(full), "%s-by-%s", name, way_names[way]);    \
		check(full, held, __VA_ARGS__);                                    \
	})
#endif
