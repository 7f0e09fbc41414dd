// SPDX-License-Identifier: GPL-2.0-or-later
// Single steps onto addresses of the kernel, which are taken before anything there is executed: they are the program's.
#include "proof.h"

#define VSYSCALL 0xffffffffff600000ul

static volatile unsigned long watched;
static volatile long onto, others;

static void stepped(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signo;
	if ((unsigned long)regs[REG_RIP] != watched)
		others += info->si_code == TRAP_TRACE;
	else
		onto += info->si_code == TRAP_TRACE && info->si_addr == (void *)watched;
}

/* Calls it under the trap flag, with one argument, in a frame of its own. */
long stepping(void *at, void *argument);
__asm__(".text\nstepping:\n\tpush %rbx\n\tmov %rdi, %rbx\n\tmov %rsi, %rdi\n\txor %esi, %esi\n\tpushf\n\t"
	"orl $0x100, (%rsp)\n\tpopf\n\tcall *%rbx\n\tpushf\n\tandl $~0x100, (%rsp)\n\tpopf\n\tpop %rbx\n\tret\n");

/* Within fault_of(), whose handler for steps is not wanted here. */
static void step_onto(void *at)
{
	struct timeval time;

	handle(SIGTRAP, stepped, 0);
	watched = (unsigned long)at;
	onto = others = 0;
	stepping(at, &time);
}

static void once(const char *name, unsigned long at)
{
	struct caught got = fault_of(step_onto, (void *)at);

	check(name, onto == 1 && (!got.signo || (got.signo == SIGSEGV && got.addr == at)),
	      "signal %d at %lx, %ld steps onto it and %ld others", got.signo, got.addr, onto, others);
	fact(name, "signal %d, %ld other steps", got.signo, others);
}

int main(void)
{
	unsigned long text = kernel_symbol("__x64_sys_ni_syscall");
	void *unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	begin();
	once("step-onto-what-cannot-be-executed", (unsigned long)unmapped);
	once("step-onto-kernel-hole", KERNEL_HOLE);
	/* The program's step is before its wild jump can do harm. */
	if (text)
		once("step-onto-kernel-text", text);
	else
		skip("step-onto-kernel-text", "the kernel does not tell its symbols");
	once("step-onto-vsyscall-page", VSYSCALL);
	return finish();
}
