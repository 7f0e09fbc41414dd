// SPDX-License-Identifier: GPL-2.0-or-later
// seccomp: errors, traps, kills and tracers by filter, and the strict mode, by each way.
#include "calls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

static void filter(int nr, unsigned action)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog all = { sizeof(program) / sizeof(*program), program };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all))
		_exit(90);
}

static volatile int trapped;
static void *volatile trapped_at;
static volatile unsigned trapped_arch;

static void trap(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signo;
	trapped = info->si_syscall;
	trapped_at = info->si_call_addr;
	trapped_arch = info->si_arch;
	regs[REG_RAX] = 4321;
}

static int with_error(enum way way)
{
	filter(SYS_getppid, SECCOMP_RET_ERRNO | 77);
	return call0(way, SYS_getppid) == -77 && call0(way, SYS_getpid) == getpid() ? 0 : 1;
}

static int with_trap(enum way way)
{
	handle(SIGSYS, trap, 0);
	filter(SYS_getppid, SECCOMP_RET_TRAP);
	long got = call0(way, SYS_getppid);

	if (got != 4321 || trapped != SYS_getppid || trapped_arch != AUDIT_ARCH_X86_64)
		return 1;
	return ((unsigned char *)trapped_at)[-2] == 0x0f && ((unsigned char *)trapped_at)[-1] == 5 ? 0 : 2;
}

static int with_kill(enum way way)
{
	filter(SYS_getppid, SECCOMP_RET_KILL_PROCESS);
	call0(way, SYS_getppid);
	return 1;
}

static int with_strict(enum way way)
{
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	call0(way, SYS_getppid);
	return 1;
}

static int with_arguments(enum way way)
{
	filter(SYS_exit_group, SECCOMP_RET_ALLOW);
	call1(way, SYS_exit_group, 5);
	return 1;
}

static int status_of(int (*act)(enum way), enum way way)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(act(way));
	waitpid(pid, &status, 0);
	return status;
}

static void with_tracer(enum way way)
{
	struct user_regs_struct regs = { 0 };
	pid_t pid = fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		filter(SYS_getppid, SECCOMP_RET_TRACE | 5);
		_exit(call0(way, SYS_getppid) == 99 ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, pid, 0, 0);
	waitpid(pid, &status, 0);
	int seen = status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8);

	ptrace(PTRACE_GETREGS, pid, 0, &regs);
	seen = seen && regs.orig_rax == SYS_getppid && regs.cs == USER_CS;
	regs.orig_rax = -1;
	regs.rax = 99;
	ptrace(PTRACE_SETREGS, pid, 0, &regs);
	ptrace(PTRACE_CONT, pid, 0, 0);
	waitpid(pid, &status, 0);
	check_way(way, "filter-with-tracer", seen && status == 0, "seen %d, status %x", seen, status);
}

int main(void)
{
	begin();
	for (int way = 0; way < ways(); way++) {
		int status = status_of(with_error, way);

		check_way(way, "filter-with-error", status == 0, "status %x", status);
		status = status_of(with_trap, way);
		check_way(way, "filter-with-trap", status == 0, "status %x", status);
		status = status_of(with_kill, way);
		check_way(way, "filter-with-kill", WTERMSIG(status) == SIGSYS, "status %x", status);
		status = status_of(with_strict, way);
		check_way(way, "strict", WTERMSIG(status) == SIGKILL, "status %x", status);
		status = status_of(with_arguments, way);
		check_way(way, "filter-with-arguments", WEXITSTATUS(status) == 5, "status %x", status);
		with_tracer(way);
	}
	return finish();
}
