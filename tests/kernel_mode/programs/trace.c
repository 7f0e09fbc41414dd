// SPDX-License-Identifier: GPL-2.0-or-later
// ptrace: registers and segments as in user mode, steps, breakpoints, watchpoints, system calls seen and changed, by all ways.
#include "calls.h"

#include <elf.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

static volatile long watched_pair[2];
#define watched watched_pair[1]

static pid_t traced(void (*act)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		act();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	return pid;
}

static int next(pid_t pid, int request, long signo)
{
	int status = 0;

	if (ptrace(request, pid, 0, signo))
		return -1;
	waitpid(pid, &status, 0);
	return status;
}

static struct user_regs_struct regs_of(pid_t pid)
{
	struct user_regs_struct regs;

	memset(&regs, 0, sizeof(regs));
	ptrace(PTRACE_GETREGS, pid, 0, &regs);
	return regs;
}

static int stopped_by(int status, int signo)
{
	return WIFSTOPPED(status) && WSTOPSIG(status) == signo;
}

static void spin(void)
{
	for (;;)
		;
}

static void segments(void)
{
	pid_t pid = traced(spin);
	struct user_regs_struct regs = regs_of(pid), after;

	check("stopped-with-user-segments", regs.cs == USER_CS && regs.ss == USER_SS, "%llx %llx", regs.cs,
	      regs.ss);
	ptrace(PTRACE_CONT, pid, 0, 0);
	usleep(20000);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, 0);
	regs = regs_of(pid);
	check("interrupted-with-user-segments", regs.cs == USER_CS && regs.ss == USER_SS, "%llx %llx",
	      regs.cs, regs.ss);
	regs.cs = 0x10;
	long refused = ptrace(PTRACE_SETREGS, pid, 0, &regs);

	fact("kernel-segment-by-ptrace", "%ld", refused);
	regs.cs = USER_CS;
	regs.rbx = 0x1234567;
	regs.eflags |= 0x3000;
	ptrace(PTRACE_SETREGS, pid, 0, &regs);
	next(pid, PTRACE_SINGLESTEP, 0);
	after = regs_of(pid);
	check("registers-set", after.rbx == 0x1234567, "%llx", after.rbx);
	check("no-privileges-by-flags", !(after.eflags & 0x3000), "%llx", after.eflags);
	end(pid);
}

static void to_the_kernel(const char *name, unsigned long at)
{
	pid_t pid = traced(spin);
	struct user_regs_struct regs = regs_of(pid);
	siginfo_t info = { 0 };
	int status;

	regs.rip = at;
	regs.orig_rax = -1;
	ptrace(PTRACE_SETREGS, pid, 0, &regs);
	status = next(pid, PTRACE_CONT, 0);
	ptrace(PTRACE_GETSIGINFO, pid, 0, &info);
	regs = regs_of(pid);
	check(name, stopped_by(status, SIGSEGV) && regs.rip == at && regs.cs == USER_CS,
	      "status %x at %llx cs %llx", status, regs.rip, regs.cs);
	fact(name, "code %d, addr is %s", info.si_code, info.si_addr == (void *)at ? "it" : "another");
	end(pid);
}

/* A stretch whose instructions are known: 2 + 10 * 4 + 3 calls of 3. */
static void stretch(void)
{
	__asm__ volatile("int3\n\tmov $10, %%ecx\n\txor %%eax, %%eax\n"
			 "1:\tadd %%ecx, %%eax\n\tnop\n\tdec %%ecx\n\tjnz 1b\n\t"
			 ".rept 3\n\tmov %0, %%eax\n\tsyscall\n\tnop\n\t.endr\n\tint3"
			 : : "i"(SYS_getppid) : "rax", "rcx", "r11");
}

static void steps(void)
{
	pid_t pid = traced(stretch);
	struct user_regs_struct regs;
	int status = next(pid, PTRACE_CONT, 0), count = 0, wrong = 0;
	unsigned long long at;
	siginfo_t info;

	check("breakpoint", stopped_by(status, SIGTRAP), "status %x", status);
	for (count = 0; count < 200; count++) {
		at = regs_of(pid).rip;
		if ((ptrace(PTRACE_PEEKTEXT, pid, at, 0) & 0xff) == 0xcc)
			break;
		status = next(pid, PTRACE_SINGLESTEP, 0);
		ptrace(PTRACE_GETSIGINFO, pid, 0, &info);
		regs = regs_of(pid);
		wrong += !stopped_by(status, SIGTRAP) || regs.cs != USER_CS || regs.rip == at;
		wrong += info.si_code != TRAP_TRACE && info.si_code != TRAP_BRKPT;
	}
	check("steps", count == 2 + 40 + 9 && !wrong, "%d steps, %d wrong", count, wrong);
	end(pid);
}

static void touches(void)
{
	watched = 1;
	for (volatile int i = 0; i < 1000; i++)
		;
	watched = 2;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (void *)watched_pair);
	stretch();
}

static void watchpoint(void)
{
	pid_t pid = traced(touches);
	size_t debug = offsetof(struct user, u_debugreg);
	int status, hits = 0;

	if (ptrace(PTRACE_POKEUSER, pid, debug, &watched) ||
	    ptrace(PTRACE_POKEUSER, pid, debug + 7 * 8, 1 | 1 << 16 | 2 << 18)) {
		skip("watchpoint", strerror(errno));
		end(pid);
		return;
	}
	while (stopped_by(status = next(pid, PTRACE_CONT, 0), SIGTRAP) &&
	       ptrace(PTRACE_PEEKUSER, pid, debug + 6 * 8, 0) & 1) {
		hits++;
		ptrace(PTRACE_POKEUSER, pid, debug + 6 * 8, 0);
	}
	fact("watchpoint-hits", "%d", hits);
	check("watchpoint", hits >= 2, "%d hits, status %x", hits, status);
	end(pid);
	pid = traced(stretch);
	status = next(pid, PTRACE_CONT, 0);
	unsigned long at = regs_of(pid).rip + 5;

	ptrace(PTRACE_POKEUSER, pid, debug, at);
	ptrace(PTRACE_POKEUSER, pid, debug + 7 * 8, 1);
	status = next(pid, PTRACE_CONT, 0);
	check("breakpoint-of-the-cpu", stopped_by(status, SIGTRAP) && regs_of(pid).rip == at,
	      "status %x at %llx, not %lx", status, regs_of(pid).rip, at);
	end(pid);
}

static enum way traced_way;

static void asks(void)
{
	long own = call0(traced_way, SYS_getppid), third = call1(traced_way, SYS_exit_group, 9);

	_exit(own == third);
}

static void calls(enum way way)
{
	struct user_regs_struct regs;
	int status;

	traced_way = way;
	pid_t pid = traced(asks);

	status = next(pid, PTRACE_SYSCALL, 0);
	regs = regs_of(pid);
	check_way(way, "entry-is-seen",
		  stopped_by(status, SIGTRAP | 0x80) && regs.orig_rax == SYS_getppid &&
			  (long)regs.rax == -ENOSYS && regs.cs == USER_CS && regs.ss == USER_SS,
		  "status %x call %lld", status, regs.orig_rax);
	check_way(way, "after-a-syscall",
		  (ptrace(PTRACE_PEEKTEXT, pid, regs.rip - 2, 0) & 0xffff) == 0x050f, "rip %llx", regs.rip);
	regs.orig_rax = SYS_getpid;
	ptrace(PTRACE_SETREGS, pid, 0, &regs);
	status = next(pid, PTRACE_SYSCALL, 0);
	regs = regs_of(pid);
	check_way(way, "another-call-instead", stopped_by(status, SIGTRAP | 0x80) && (pid_t)regs.rax == pid,
		  "status %x result %lld", status, regs.rax);
	status = next(pid, PTRACE_SYSCALL, 0);
	regs = regs_of(pid);
	check_way(way, "arguments-are-seen", regs.orig_rax == SYS_exit_group && regs.rdi == 9, "%lld %lld",
		  regs.orig_rax, regs.rdi);
	regs.rdi = 11;
	ptrace(PTRACE_SETREGS, pid, 0, &regs);
	status = next(pid, PTRACE_CONT, 0);
	check_way(way, "arguments-are-changed", WIFEXITED(status) && WEXITSTATUS(status) == 11, "status %x",
		  status);
	pid = traced(asks);
	status = next(pid, PTRACE_SYSEMU, 0);
	regs = regs_of(pid);
	regs.rax = 9;
	ptrace(PTRACE_SETREGS, pid, 0, &regs);
	status = next(pid, PTRACE_SYSEMU, 0);
	regs = regs_of(pid);
	check_way(way, "emulated", regs.orig_rax == SYS_exit_group, "status %x call %lld", status,
		  regs.orig_rax);
	end(pid);
}

int main(void)
{
	struct user_fpregs_struct fp;
	unsigned long text = kernel_symbol("commit_creds");
	pid_t pid;

	begin();
	segments();
	to_the_kernel("to-the-kernel's-hole", KERNEL_HOLE);
	if (text)
		to_the_kernel("to-the-kernel's-text", text);
	pid = traced(spin);
	struct user_regs_struct regs = regs_of(pid);

	regs.rip = NOWHERE;
	fact("to-nowhere", "%ld", ptrace(PTRACE_SETREGS, pid, 0, &regs));
	fact("vectors", "%ld", ptrace(PTRACE_GETFPREGS, pid, 0, &fp));
	fact("to-nowhere-it-ends", "%x", next(pid, PTRACE_CONT, 0));
	end(pid);
	steps();
	watchpoint();
	for (int way = 0; way < ways(); way++)
		calls(way);
	return finish();
}
