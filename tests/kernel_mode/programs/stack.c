// SPDX-License-Identifier: GPL-2.0-or-later
// The user stack: grown over unmapped pages, at its end, elsewhere or nowhere while interrupts come, and below it the red zone.
#include "proof.h"

#include <sys/resource.h>

/* Counts down `rdi` rounds in which the red zone has to keep what is written there: rax, wrong words. */
__asm__(".text\nred_zone:\n\txor %eax, %eax\n1:\n"
	".irp off,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128\n"
	"\tmov %rdi, -\\off(%rsp)\n.endr\n"
	"\tmov $300, %ecx\n2:\tdec %ecx\n\tjnz 2b\n"
	".irp off,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128\n"
	"\tcmp %rdi, -\\off(%rsp)\n\tje 3f\n\tinc %eax\n3:\n.endr\n"
	"\tdec %rdi\n\tjnz 1b\n\tret\n");
long red_zone(long rounds);

/* Spins `rsi` rounds with RSP at `rdi`; what it had in registers is checked: rax, wrong ones. */
__asm__("spin_at:\n\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
	"\tmov %rsp, %rbx\n\tmov %rdi, %rsp\n\tmov %rsi, %rcx\n"
	".irp reg,r8,r9,r10,r11,r12,r13,r14,r15,rbp,rdx\n\tlea 77(%rbx), %\\reg\n.endr\n"
	"1:\tdec %rcx\n\tjnz 1b\n"
	"\tlea 77(%rbx), %rsi\n\txor %eax, %eax\n"
	".irp reg,r8,r9,r10,r11,r12,r13,r14,r15,rbp,rdx\n"
	"\tcmp %\\reg, %rsi\n\tje 2f\n\tinc %eax\n2:\n.endr\n"
	"\tcmp %rsp, %rdi\n\tje 2f\n\tinc %eax\n2:\tmov %rbx, %rsp\n"
	"\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n");
long spin_at(unsigned long rsp, long rounds);

static volatile long handled;

static void count(int signo, siginfo_t *info, void *context)
{
	char use[512];

	(void)signo, (void)info, (void)context;
	memset(use, handled & 255, sizeof(use));
	__asm__ volatile("" : : "r"(use) : "memory");
	handled++;
}

static void red_zones(void)
{
	double begun = now();
	long wrong = 0;
	timer_t timer;

	handle(SIGRTMIN, count, 0);
	timer = storm(SIGRTMIN, 300);
	while (going(begun, 0.7, handled > 30))
		wrong += red_zone(2000);
	check("red-zone-and-signals", !wrong && handled > 30, "%ld words, %ld signals", wrong, handled);
	timer_delete(timer);
	pid_t other = hog();
	unsigned long before = ticks();

	for (begun = now(); going(begun, 0.5, ticks() > before + 5);)
		wrong += red_zone(2000);
	check("red-zone-and-interrupts", !wrong && ticks() > before + 5, "%ld words, %lu ticks", wrong,
	      ticks() - before);
	end(other);
}

static void spins(const char *name, unsigned long rsp)
{
	unsigned long before = ticks();
	double begun = now();
	long wrong = 0;

	while (going(begun, 0.2, ticks() > before + 3))
		wrong += spin_at(rsp, 3000000);
	check(name, !wrong && ticks() > before + 3, "%ld registers, %lu ticks", wrong, ticks() - before);
}

static void stacks_anywhere(void)
{
	unsigned char *page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int wrong = 0;
	pid_t other = hog();

	memset(page, 0x5a, 3 * 4096);
	spins("spins-on-a-page", (unsigned long)page + 4096 + 2041);
	for (int i = 0; i < 3 * 4096; i++)
		wrong += page[i] != 0x5a;
	check("nothing-is-written-there", !wrong, "%d bytes", wrong);
	mprotect(page, 3 * 4096, PROT_NONE);
	spins("spins-on-no-access", (unsigned long)page + 4096);
	munmap(page, 3 * 4096);
	spins("spins-on-unmapped", (unsigned long)page + 4096);
	spins("spins-on-null", 0);
	spins("spins-below-null", -8ul);
	spins("spins-in-the-kernel's-hole", KERNEL_HOLE);
	spins("spins-nowhere", NOWHERE);
	spins("spins-nowhere-high", NOWHERE_HIGH + 3);
	spins("spins-on-the-kernel's-data", DIRECT_MAP + (1 << 20));
	end(other);
}

static int grown(int depth)
{
	volatile char room[4000];

	room[depth % 4000] = (char)depth;
	return depth ? grown(depth - 1) + (room[depth % 4000] == (char)depth) : 0;
}

static void endless(void *arg)
{
	volatile char room[1000];

	room[0] = 1;
	if (arg)
		endless(arg);
	room[1] = room[0];
}

static void pushes(void *arg)
{
	/* A push is the first access of each page. */
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rcx\n"
			 "1:\tpush %%rcx\n\tsub $4088, %%rsp\n\tdec %%rcx\n\tjnz 1b\n"
			 "\tmov %%rbx, %%rsp"
			 :
			 : "r"(arg)
			 : "rbx", "rcx", "memory");
}

static void growth(void)
{
	static const struct rlimit limit = { 8 << 20, 8 << 20 };
	struct caught got;
	pid_t pid;
	int status;

	check("grows-by-calls", grown(1000) == 1000, "%d", grown(1000));
	pid = fork();
	if (!pid) {
		pushes((void *)1500);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	check("grows-by-pushes", status == 0, "status %x", status);
	setrlimit(RLIMIT_STACK, &limit);
	got = fault_of(endless, &status);
	check("its-end", got.signo == SIGSEGV && got.addr < (unsigned long)&got, "signal %d",
	      got.signo);
	pid = fork();
	if (!pid)
		endless(&status);
	waitpid(pid, &status, 0);
	check("its-end-without-another", WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
	      "status %x", status);
}

int main(void)
{
	begin();
	growth();
	red_zones();
	stacks_anywhere();
	return finish();
}
