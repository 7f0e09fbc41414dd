// SPDX-License-Identifier: GPL-2.0-or-later
// Traps that a program makes itself: breakpoints, undefined instructions, arithmetic, steps, software interrupts.
#include "proof.h"

#define ACT(name, ...) static void name(void *arg) { (void)arg; __asm__ volatile(__VA_ARGS__); }

ACT(breakpoint, "int3")
ACT(long_breakpoint, ".byte 0xcd, 3")
ACT(undefined, "ud2")
ACT(undefined_1, "ud1 %%eax, %%eax" ::: "memory")
ACT(wrong_lock, ".byte 0xf0, 0x90")
ACT(overflow, ".byte 0xcd, 4")
ACT(icebp, ".byte 0xf1")
ACT(divide, "xor %%ecx, %%ecx\n\tmov $1, %%eax\n\txor %%edx, %%edx\n\tdiv %%ecx" ::: "eax", "ecx", "edx")
ACT(divide_most, "mov $0x80000000, %%eax\n\tcltd\n\tmov $-1, %%ecx\n\tidiv %%ecx" ::: "eax", "ecx", "edx")
ACT(step, "pushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tnop\n\tnop" ::: "memory")
ACT(no_segment, "mov $0xff3, %%eax\n\tmov %%eax, %%fs" ::: "eax")
ACT(no_data_segment, "mov $0xff3, %%eax\n\tmov %%eax, %%ds" ::: "eax")
ACT(same_segments, "mov $0x2b, %%eax\n\tmov %%eax, %%ds\n\tmov %%eax, %%es\n\txor %%eax, %%eax\n\t"
    "mov %%eax, %%ds\n\tmov %%eax, %%es" ::: "eax")
ACT(int_80, "mov $20, %%eax\n\tint $0x80" ::: "eax", "r8", "r9", "r10", "r11", "memory")
ACT(sysenter, "mov $20, %%eax\n\tmov %%rsp, %%rbp\n\tsysenter" ::: "eax", "rbp", "memory")
ACT(too_long, ".rept 15\n\t.byte 0x66\n\t.endr\n\tnop")

/* Divisions by zero with that exception unmasked. */
static void x87(void *arg)
{
	static const unsigned short control = 0x37b;

	(void)arg;
	__asm__ volatile("fldcw %0\n\tfld1\n\tfldz\n\tfdivrp\n\tfwait" : : "m"(control));
}

static void sse(void *arg)
{
	static const unsigned control = 0x1d80;

	(void)arg;
	__asm__ volatile("ldmxcsr %0\n\tmov $1, %%eax\n\tcvtsi2sd %%eax, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\t"
			 "divsd %%xmm1, %%xmm0" : : "m"(control) : "eax", "xmm0", "xmm1");
}

static void misaligned(void *arg)
{
	(void)arg;
	static char room[16] __attribute__((aligned(16)));

	__asm__ volatile("pushf\n\torl $0x40000, (%%rsp)\n\tpopf\n\tmovl $1, 1(%0)\n\t"
			 "pushf\n\tandl $~0x40000, (%%rsp)\n\tpopf" : : "r"(room) : "memory");
}

static void misaligned_vector(void *arg)
{
	(void)arg;
	static char room[32] __attribute__((aligned(16)));

	__asm__ volatile("movaps 1(%0), %%xmm0" : : "r"(room) : "xmm0");
}

static void told(const char *name, void (*act)(void *))
{
	struct caught got = fault_of(act, NULL);

	static const unsigned ordinary = 0x1f80;

	__asm__ volatile("fninit\n\tldmxcsr %0" : : "m"(ordinary));
	fact(name, "signal %d code %d at %s error %lx", got.signo, got.code,
	     got.addr == 0 ? "nothing" : got.addr == got.rip ? "itself" : "another", got.error);
}

/* What leaves the process in an unknown state, in a child. */
static void ends(const char *name, void (*act)(void *))
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		act(NULL);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	fact(name, "status %x", status);
}

static void at_itself(const char *name, void (*act)(void *), int signo, int code)
{
	struct caught got = fault_of(act, NULL);

	check(name, got.signo == signo && got.code == code && got.addr == got.rip && got.cs == USER_CS,
	      "signal %d code %d addr %lx at %lx", got.signo, got.code, got.addr, got.rip);
}

/* The same address on 64 levels: steps and breakpoints within the handler of the first. */
static volatile int handled;

static void again(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	if (handled++ < 63)
		__asm__ volatile("int3");
}

static volatile long steps;

static void stepped(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)context;
	steps += info->si_code == TRAP_TRACE;
}

/* A loop and calls under the trap flag: each instruction is one step, the call of the kernel too. */
static void steps_itself(void)
{
	handle(SIGTRAP, stepped, 0);
	__asm__ volatile("pushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tmov $5, %%ebx\n"
			 "1:\tmov %0, %%eax\n\tsyscall\n\tdec %%ebx\n\tjnz 1b\n\t"
			 "pushf\n\tandl $~0x100, (%%rsp)\n\tpopf"
			 : : "i"(SYS_getpid) : "rax", "rbx", "rcx", "r11", "memory");
	signal(SIGTRAP, SIG_DFL);
	fact("own-steps", "%ld", steps);
	check("own-steps-are-all", steps >= 18 && steps <= 25, "%ld", steps);
}

int main(void)
{
	begin();
	expect("breakpoint", breakpoint, NULL, SIGTRAP, SI_KERNEL, 0);
	expect("long-breakpoint", long_breakpoint, NULL, SIGTRAP, SI_KERNEL, 0);
	at_itself("undefined", undefined, SIGILL, ILL_ILLOPN);
	at_itself("undefined-1", undefined_1, SIGILL, ILL_ILLOPN);
	at_itself("wrong-lock", wrong_lock, SIGILL, ILL_ILLOPN);
	at_itself("divide", divide, SIGFPE, FPE_INTDIV);
	at_itself("divide-most", divide_most, SIGFPE, FPE_INTDIV);
	expect("overflow", overflow, NULL, SIGSEGV, SI_KERNEL, 0);
	expect("no-segment", no_segment, NULL, SIGSEGV, SI_KERNEL, 0);
	expect("no-data-segment", no_data_segment, NULL, SIGSEGV, SI_KERNEL, 0);
	expect("data-segments", same_segments, NULL, 0, 0, 0);
	expect("misaligned-vector", misaligned_vector, NULL, SIGSEGV, SI_KERNEL, 0);
	told("step", step);
	told("icebp", icebp);
	told("x87", x87);
	told("sse", sse);
	told("too-long", too_long);
	told("misaligned", misaligned);
	ends("int-80", int_80);
	ends("sysenter", sysenter);
	handle(SIGTRAP, again, SA_NODEFER);
	__asm__ volatile("int3");
	check("nested-breakpoints", handled == 64, "%d", handled);
	steps_itself();
	return finish();
}
