// SPDX-License-Identifier: GPL-2.0-or-later
// The other ways into the kernel: the vsyscall page, the vDSO, numbers that are no calls, `syscall` under odd flags.
#include "calls.h"

#include <sched.h>
#include <sys/auxv.h>

#define VSYSCALL 0xffffffffff600000ul

static void call_time(void *at)
{
	struct timeval time;

	((int (*)(struct timeval *, void *))at)(&time, NULL);
}

static void read_at(void *at) { (void)*(volatile char *)at; }

static void vsyscalls(void)
{
	struct timeval time = { 0 }, own;
	struct caught got = fault_of(call_time, (void *)VSYSCALL);
	unsigned cpu = 99;

	fact("vsyscall", "signal %d code %d", got.signo, got.code);
	if (!got.signo) {
		((int (*)(struct timeval *, void *))VSYSCALL)(&time, NULL);
		gettimeofday(&own, NULL);
		check("vsyscall-time", own.tv_sec - time.tv_sec <= 1, "%ld", time.tv_sec);
		check("vsyscall-cpu", !((int (*)(unsigned *, void *, void *))(VSYSCALL + 0x800))(&cpu, NULL, NULL) &&
		      cpu == (unsigned)sched_getcpu(), "%u", cpu);
		got = fault_of(call_time, (void *)(VSYSCALL + 0x400));
		check("vsyscall-seconds", !got.signo, "signal %d", got.signo);
	}
	got = fault_of(call_time, (void *)(VSYSCALL + 1));
	fact("vsyscall-amiss", "signal %d code %d addr %lx", got.signo, got.code, got.addr);
	got = fault_of(read_at, (void *)VSYSCALL);
	fact("vsyscall-read", "signal %d code %d addr %lx", got.signo, got.code, got.addr);
}

static void numbers(enum way way)
{
	static const long wrong[] = { 9999, -1, 1l << 30, 0x7fffffff, 463 + 1000, 0x40000000 + 39 };

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		long got = call0(way, wrong[i]);

		check_way(way, "no-such-call", got == -ENOSYS, "%ld gives %ld", wrong[i], got);
	}
	/* The kernel takes the lower half of the number. */
	long got = call0(way, SYS_getpid | 1l << 32), plain = getpid();

	fact(way == WAY_SYSCALL ? "high-half" : "high-half-otherwise", "%s", got == plain ? "ignored" : "refused");
}

/* What a call leaves as it was: all registers but rax, rcx, r11 and the flags. rax: how many changed. */
__asm__(".text\nkept:\n\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
	"\tpush %rdi\n\tpush %rsi\n\tmov %rdx, %rax\n"
	".irp reg,rbx,rbp,r12,r13,r14,r15,rdi,rsi,rdx,r8,r9,r10\n\tlea 0x135(%rsp), %\\reg\n.endr\n"
	"\tlea 1f(%rip), %rcx\n\tcmpq $0, 8(%rsp)\n\tje 2f\n\tcmpq $1, 8(%rsp)\n\tjne 3f\n"
	"\tcli\n\tmov $0x202, %r11d\n3:\tjmp *(%rsp)\n2:\tsyscall\n1:\txor %eax, %eax\n"
	"\tlea 0x135(%rsp), %rcx\n"
	".irp reg,rbx,rbp,r12,r13,r14,r15,rdi,rsi,rdx,r8,r9,r10\n\tcmp %\\reg, %rcx\n\tje 4f\n\tinc %eax\n4:\n.endr\n"
	"\tadd $16, %rsp\n\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n");
long kept(long way, unsigned long entry, long call);

static volatile long handled;

static void count(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	handled++;
}

static void registers(enum way way)
{
	/* Calls that do nothing with any arguments: most do no work on the way out, a yield does. */
	static const int harmless[] = { SYS_getppid, SYS_sched_yield, SYS_getuid, 9999 };
	unsigned long entry = way == WAY_FAST ? entries.call : entries.syscall;
	double begun = now();
	long changed = 0;

	handle(SIGRTMIN, count, 0);
	timer_t timer = storm(SIGRTMIN, 500);

	for (int i = 0; going(begun, 0.5, handled > 20); i++)
		changed += kept(way, entry, harmless[i % 4]);
	timer_delete(timer);
	check_way(way, "registers-are-kept", !changed && handled > 20, "%ld, %ld signals", changed, handled);
}

static void flags(void)
{
	unsigned long after;

	__asm__ volatile("pushf\n\torl $0x240400, (%%rsp)\n\tpopf\n\tmov %1, %%eax\n\tsyscall\n\tpushf\n\tpop %0\n\t"
			 "pushf\n\tandl $~0x240400, (%%rsp)\n\tpopf\n\tcld"
			 : "=&r"(after) : "i"(SYS_getpid) : "rax", "rcx", "r11", "memory");
	check("flags-over-a-call", (after & 0x240400) == 0x240400, "%lx", after);
	__asm__ volatile("pushf\n\torl $0x4000, (%%rsp)\n\tpopf\n\tmov %1, %%eax\n\tsyscall\n\tpushf\n\tpop %0\n\t"
			 "pushf\n\tandl $~0x4000, (%%rsp)\n\tpopf"
			 : "=&r"(after) : "i"(SYS_sched_yield) : "rax", "rcx", "r11", "memory");
	check("nested-task-flag-over-a-call", after & 0x4000, "%lx", after);
	for (double begun = now(); now() < begun + 0.2;)
		__asm__ volatile("pushf\n\torl $0x4000, (%%rsp)\n\tpopf\n\tmov $100000, %%ecx\n1:\tdec %%ecx\n\t"
				 "jnz 1b\n\tpushf\n\tpop %0\n\tpushf\n\tandl $~0x4000, (%%rsp)\n\tpopf"
				 : "=&r"(after) : : "rcx", "memory");
	check("nested-task-flag-over-interrupts", after & 0x4000, "%lx", after);
}

int main(void)
{
	struct timespec one, two;

	begin();
	vsyscalls();
	for (int way = 0; way < ways(); way++)
		numbers(way), registers(way);
	flags();
	check("vdso", getauxval(AT_SYSINFO_EHDR) && !clock_gettime(CLOCK_MONOTONIC, &one), "no");
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &two);
	check("vdso-and-call-agree", two.tv_sec - one.tv_sec <= 1, "%ld %ld", one.tv_sec, two.tv_sec);
	return finish();
}
