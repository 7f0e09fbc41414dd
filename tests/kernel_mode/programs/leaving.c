// SPDX-License-Identifier: GPL-2.0-or-later
// The return from a signal: to the kernel's half, to nowhere, or with other segments it must never run there in ring 0.
#include "proof.h"

static unsigned long target, segments;
static volatile int taken;

static void redirect(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signo, (void)info;
	taken++;
	if (target)
		regs[REG_RIP] = target;
	if (segments)
		regs[REG_CSGSFS] = segments;
}

static void go(void *arg)
{
	(void)arg;
	raise(SIGUSR1);
}

static struct caught left_to(unsigned long rip, unsigned long all_segments)
{
	target = rip;
	segments = all_segments;
	handle(SIGUSR1, redirect, 0);
	return fault_of(go, NULL);
}

static void expect_at(const char *name, unsigned long rip, int code)
{
	struct caught got = left_to(rip, 0);
	unsigned long addr = code == SI_KERNEL ? 0 : rip;

	check(name, got.signo == SIGSEGV && got.code == code && got.addr == addr && got.rip == rip,
	      "signal %d code %d addr %lx at %lx", got.signo, got.code, got.addr, got.rip);
	check("user-segment-there", got.cs == USER_CS, "%lx", got.cs);
}

static void with_segments(const char *name, unsigned long cs, unsigned long ss)
{
	struct caught got = left_to(0, cs | ss << 48);

	fact(name, "signal %d code %d cs %lx error %lx", got.signo, got.code, got.cs, got.error);
}

/* What follows is the same process, in the same mode, and its calls work. */
static void still_here(void)
{
	const char *wanted = getenv("PROOF_MODE");
	pid_t pid = fork();
	int status = 1;

	if (!pid)
		_exit(7);
	waitpid(pid, &status, 0);
	check("still-here", WEXITSTATUS(status) == 7, "%x", status);
	check("still-in-its-mode", kernel_mode() == (wanted && !strcmp(wanted, "kernel")), "no");
}

int main(void)
{
	static const char *const functions[] = { "commit_creds", "__x64_sys_getppid", "panic",
						 "entry_SYSCALL_64", "asm_exc_page_fault" };

	begin();
	expect_at("to-the-kernel's-hole", KERNEL_HOLE, SEGV_MAPERR);
	for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		unsigned long at = kernel_symbol(functions[i]);

		if (at)
			expect_at(functions[i], at, SEGV_MAPERR);
		else
			skip(functions[i], "the kernel does not tell its symbols");
	}
	expect_at("to-null", 1, SEGV_MAPERR);
	struct caught got = left_to(NOWHERE, 0);

	fact("to-nowhere", "signal %d code %d", got.signo, got.code);
	got = left_to(1ul << 47, 0);
	fact("to-the-first-nowhere", "signal %d code %d", got.signo, got.code);
	with_segments("kernel-segments", 0x10, 0x18);
	with_segments("kernel-code-segment", 0x10, USER_SS);
	with_segments("kernel-stack-segment", USER_CS, 0x18);
	with_segments("data-as-code", USER_SS, USER_SS);
	with_segments("no-such-segment", 0xff3, USER_SS);
	with_segments("no-such-stack-segment", USER_CS, 0xff3);
	still_here();
	return finish();
}
