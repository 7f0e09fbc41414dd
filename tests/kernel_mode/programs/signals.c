// SPDX-License-Identifier: GPL-2.0-or-later
// Signals: on another stack, nested, queued, left by jumps; and the return from them with every register as it was.
#include "proof.h"

#include <ucontext.h>

static char other[1 << 16] __attribute__((aligned(16)));
static volatile long depth, deepest, on_other, wrong_segments;

static void nested(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	char *here = (char *)&regs;

	(void)info;
	on_other += here >= other && here < other + sizeof(other);
	wrong_segments += (regs[REG_CSGSFS] & 0xffff) != USER_CS;
	depth++;
	deepest = depth > deepest ? depth : deepest;
	if (depth < 8)
		raise(signo);
	depth--;
}

static void on_another_stack(void)
{
	stack_t stack = { .ss_sp = other, .ss_size = sizeof(other) }, told;

	sigaltstack(&stack, NULL);
	handle(SIGUSR1, nested, SA_ONSTACK | SA_NODEFER);
	raise(SIGUSR1);
	check("nested-on-another-stack", deepest == 8 && on_other == 8, "%ld deep, %ld there", deepest,
	      on_other);
	check("handlers-see-user-segments", !wrong_segments, "%ld", wrong_segments);
	sigaltstack(NULL, &told);
	check("left-again", told.ss_flags == 0, "flags %x", told.ss_flags);
}

static volatile int stages[4], stage;

static void masked(int signo, siginfo_t *info, void *context)
{
	(void)context;
	stages[stage++] = signo;
	if (signo == SIGUSR1)
		kill(getpid(), SIGUSR2);
	if (stage < 4)
		stages[stage++] = info->si_code;
}

static void masks(void)
{
	struct sigaction act = { .sa_sigaction = masked, .sa_flags = SA_SIGINFO };

	sigaddset(&act.sa_mask, SIGUSR2);
	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGUSR2, &act, NULL);
	kill(getpid(), SIGUSR1);
	check("masked-comes-after", stages[0] == SIGUSR1 && stages[1] == SI_USER && stages[2] == SIGUSR2,
	      "%d %d %d", stages[0], stages[1], stages[2]);
}

static volatile long queued, sum;

static void queue(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)context;
	sum = sum * 10 + info->si_value.sival_int;
	queued++;
}

static void queues(void)
{
	sigset_t set;

	handle(SIGRTMIN + 1, queue, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 1; i <= 5; i++)
		sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = i });
	check("blocked", queued == 0, "%ld", queued);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	check("queued-in-order", queued == 5 && sum == 12345, "%ld, %ld", queued, sum);
}

static sigjmp_buf out;
static volatile long jumps;
static const long enough = 100;

/* A busy host may be late with the timer's end: the signals until then change nothing. */
static void leave(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	if (jumps < enough)
		siglongjmp(out, 1);
}

static void jumps_out(void)
{
	handle(SIGALRM, leave, 0);
	static timer_t timer;

	/* There has to be somewhere to jump to before the first signal comes. */
	if (!sigsetjmp(out, 1))
		timer = storm(SIGALRM, 2000);
	while (jumps < enough)
		if (sigsetjmp(out, 1))
			jumps++;
		else
			for (;;)
				;
	timer_delete(timer);
	signal(SIGALRM, SIG_IGN);
	check("jumps-out-of-handlers", jumps == enough, "%ld", jumps);
}

/* Holds a value in each register while signals come; rax: how many registers changed, flags as one. */
__asm__(".text\nheld:\n\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
	"\tmov %rsp, %rbx\n"
	".irp reg,rax,rcx,rdx,rsi,rbp,r8,r9,r10,r11,r12,r13,r14,r15\n"
	"\tlea 0x1357(%rbx,%rbx,2), %\\reg\n.endr\n"
	"\tpush %rdi\n\tpushf\n\tpop %rdi\n\tpop %rdi\n"
	"\tstd\n\tstc\n1:\tlea -1(%rdi), %rdi\n\tjrcxz 2f\n\txchg %rcx, %rdi\n\tjrcxz 3f\n\txchg %rcx, %rdi\n"
	"\tjmp 1b\n2:\tjmp 2b\n3:\txchg %rcx, %rdi\n"
	"\tpushf\n\tcld\n\tpop %rdi\n\tand $0x401, %edi\n\tcmp $0x401, %edi\n\tsetne %dil\n\tmovzbl %dil, %edi\n"
	"\tpush %rax\n\tlea 0x1357(%rbx,%rbx,2), %rax\n"
	".irp reg,rcx,rdx,rsi,rbp,r8,r9,r10,r11,r12,r13,r14,r15\n"
	"\tcmp %\\reg, %rax\n\tje 4f\n\tinc %edi\n4:\n.endr\n"
	"\tcmp %rax, (%rsp)\n\tje 4f\n\tinc %edi\n4:\tpop %rax\n\tmov %edi, %eax\n"
	"\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n");
long held(long rounds);

static volatile long spoiled;

static void spoil(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	spoiled++;
	__asm__ volatile(".irp reg,rax,rcx,rdx,rsi,rdi,r8,r9,r10,r11,r12,r13,r14,r15\n"
			 "\tmov $0x77, %%\\reg\n.endr" : : :
			 "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
			 "r14", "r15");
}

static void registers(void)
{
	double begun = now();
	long wrong = 0;

	handle(SIGRTMIN + 2, spoil, SA_ONSTACK);
	timer_t timer = storm(SIGRTMIN + 2, 400);

	while (going(begun, 1, spoiled > 50))
		wrong += held(100000);
	timer_delete(timer);
	check("registers-and-flags", !wrong && spoiled > 50, "%ld, %ld signals", wrong, spoiled);
}

static ucontext_t here, there;
static volatile int switched;

static void another(void)
{
	switched++;
	swapcontext(&there, &here);
	switched++;
}

static void contexts(void)
{
	getcontext(&there);
	there.uc_stack.ss_sp = malloc(1 << 16);
	there.uc_stack.ss_size = 1 << 16;
	there.uc_link = &here;
	makecontext(&there, another, 0);
	swapcontext(&here, &there);
	swapcontext(&here, &there);
	check("contexts", switched == 2, "%d", switched);
}

static void sees(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signo, (void)info;
	regs[REG_RAX] = 0x1234;
	regs[REG_RIP] += 2;
}

int main(void)
{
	long changed = 0;

	begin();
	on_another_stack();
	masks();
	queues();
	jumps_out();
	registers();
	contexts();
	handle(SIGILL, sees, 0);
	__asm__ volatile("ud2" : "+a"(changed));
	check("what-a-handler-changes", changed == 0x1234, "%lx", changed);
	return finish();
}
