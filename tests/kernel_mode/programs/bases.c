// SPDX-License-Identifier: GPL-2.0-or-later
// The bases of FS and GS: set by calls and by instructions to any value, and kept over all that enters the kernel.
#include "calls.h"

#include <asm/prctl.h>
#include <pthread.h>
#include <sys/auxv.h>

#define HWCAP2_FSGSBASE 2

static int by_instruction;
static volatile long handled, wrong;
static volatile unsigned long wanted;
static volatile unsigned word = 0x12345678;

static void set_gs(unsigned long base)
{
	if (by_instruction)
		__asm__ volatile("wrgsbase %0" : : "r"(base));
	else
		syscall(SYS_arch_prctl, ARCH_SET_GS, base);
}

static unsigned long gs(void)
{
	unsigned long base = 0;

	if (by_instruction)
		__asm__ volatile("rdgsbase %0" : "=r"(base));
	else
		syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	return base;
}

static void count(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	wrong += gs() != wanted;
	handled++;
}

static void spin(void)
{
	for (double begun = now(); now() < begun + 0.1;)
		wrong += gs() != wanted;
}

/* Under this base: interrupts, other tasks, signals, breakpoints, steps, page faults, calls. */
static void under(const char *name, unsigned long base)
{
	volatile char *page = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	timer_t timer;

	wanted = base;
	wrong = handled = 0;
	set_gs(base);
	handle(SIGTRAP, count, 0);
	handle(SIGRTMIN, count, 0);
	pid_t other = hog();

	spin();
	timer = storm(SIGRTMIN, 500);
	spin();
	timer_delete(timer);
	end(other);
	for (int i = 0; i < 30; i++) {
		__asm__ volatile("int3");
		__asm__ volatile("pushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tnop\n\tnop\n\t"
				 "pushf\n\tandl $~0x100, (%%rsp)\n\tpopf" ::: "memory");
		page[i * 4096] = 1;
		for (int way = 0; way < ways(); way++)
			wrong += call0(way, SYS_getpid) != getpid();
		wrong += gs() != wanted;
	}
	munmap((void *)page, 1 << 20);
	check(name, !wrong && handled > 60, "%ld wrong, %ld signals", wrong, handled);
	set_gs(0);
}

static void *own_base(void *arg)
{
	unsigned long base = (unsigned long)arg, bad = 0;

	set_gs(base);
	for (int i = 0; i < 100; i++) {
		bad += gs() != base;
		sched_yield();
		for (volatile int j = 0; j < 3000; j++)
			;
		bad += gs() != base;
	}
	return (void *)bad;
}

static void of_threads(void)
{
	pthread_t threads[4];
	unsigned long bad = 0;
	void *result;

	for (unsigned long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, own_base, (void *)(0x10000 * i));
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		bad += (unsigned long)result;
	}
	check("each-thread-its-own", !bad, "%lu", bad);
}

static void write_base(void *arg)
{
	__asm__ volatile("wrgsbase %0" : : "r"(arg));
}

static void of_calls(enum way way)
{
	unsigned long told = 0, thread;

	check_way(way, "set-by-call", !call2(way, SYS_arch_prctl, ARCH_SET_GS, &word), "no");
	check_way(way, "told-by-call", !call2(way, SYS_arch_prctl, ARCH_GET_GS, &told) &&
		  told == (unsigned long)&word, "%lx", told);
	unsigned seen;

	__asm__ volatile("movl %%gs:0, %0" : "=r"(seen));
	check_way(way, "used", seen == word, "%x", seen);
	long refused = call2(way, SYS_arch_prctl, ARCH_SET_GS, KERNEL_HOLE);

	check_way(way, "kernel-base-is-refused", refused == -EPERM, "%ld", refused);
	check_way(way, "fs-by-call", !call2(way, SYS_arch_prctl, ARCH_GET_FS, &told), "no");
	__asm__("mov %%fs:0, %0" : "=r"(thread));
	check_way(way, "fs-is-the-thread", told == thread, "%lx %lx", told, thread);
	call2(way, SYS_arch_prctl, ARCH_SET_GS, 0);
}

int main(void)
{
	begin();
	for (int way = 0; way < ways(); way++)
		of_calls(way);
	under("by-call", (unsigned long)&word);
	by_instruction = !!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE);
	fact("by-instruction", "%d", by_instruction);
	of_threads();
	if (!by_instruction)
		return finish();
	under("user-base", (unsigned long)&word);
	under("wild-base", 0x123456789000);
	under("kernel-base", KERNEL_HOLE);
	under("another-kernel-base", -4096ul);
	unsigned long area = kernel_symbol("__per_cpu_start"), text = kernel_symbol("_text");

	fact("per-cpu-is-told", "%d", area != 0 || text != 0);
	under("kernel-text-as-base", text);
	struct caught got = fault_of(write_base, (void *)NOWHERE);

	set_gs(0);
	fact("no-such-base", "signal %d code %d", got.signo, got.code);
	return finish();
}
