/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all proofs share: how they say what held, in which mode they run, and how a fault is caught. */
#ifndef PROOF_H
#define PROOF_H

#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PR_KERNEL_MODE 0x4b4d4f44
enum { KERNEL_MODE_GET, KERNEL_MODE_ENTER, KERNEL_MODE_LEAVE, KERNEL_MODE_ENTRIES };
#define DIRECTORY "/proc/sys/kernel/kernel_mode_directory"
/* Of Documentation/arch/x86/x86_64/mm.rst: all memory without KASLR; a hole; and what is in neither half. */
#define DIRECT_MAP 0xffff888000000000ul
#define KERNEL_HOLE 0xffffe90000000000ul
#define NOWHERE 0x0000900000000000ul
#define NOWHERE_HIGH 0xdead000000000000ul
#define USER_CS 0x33
#define USER_SS 0x2b

static int failures;

static inline int kernel_mode(void)
{
	unsigned cs;

	__asm__ volatile("mov %%cs, %0" : "=r"(cs));
	return (cs & 3) == 0;
}

/* A line "ok NAME" or "not ok NAME: what". Returns whether it held. */
__attribute__((format(printf, 3, 4), unused)) static int
check(const char *name, int held, const char *what, ...)
{
	char text[256];
	va_list words;

	va_start(words, what);
	vsnprintf(text, sizeof(text), what, words);
	va_end(words);
	if (held)
		printf("ok %s\n", name);
	else
		printf("not ok %s: %s\n", name, text);
	failures += !held;
	fflush(stdout);
	return held;
}

/* What depends on the CPU or its emulation, and has to be the same in both modes. */
__attribute__((format(printf, 2, 3), unused)) static void
fact(const char *name, const char *what, ...)
{
	va_list words;

	printf("fact %s ", name);
	va_start(words, what);
	vprintf(what, words);
	va_end(words);
	printf("\n");
	fflush(stdout);
}

__attribute__((unused)) static void skip(const char *name, const char *why)
{
	printf("skip %s: %s\n", name, why);
	fflush(stdout);
}

/* The program has to run in the mode that PROOF_MODE names. */
__attribute__((unused)) static void begin(void)
{
	const char *wanted = getenv("PROOF_MODE");

	setvbuf(stdout, NULL, _IOLBF, 0);
	check("mode", kernel_mode() == (wanted && !strcmp(wanted, "kernel")), "wanted %s",
	      wanted ? wanted : "nothing");
}

__attribute__((unused)) static int finish(void)
{
	printf("done %d\n", failures);
	fflush(stdout);
	return failures != 0;
}

struct caught {
	int signo, code;
	unsigned long addr, rip, cs, error;
};

static struct caught caught_now;
static sigjmp_buf caught_jump;

static void catch_it(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	caught_now = (struct caught){ signo, info->si_code, (unsigned long)info->si_addr,
				      regs[REG_RIP], regs[REG_CSGSFS] & 0xffff, regs[REG_ERR] };
	siglongjmp(caught_jump, 1);
}

/* A signal stack of a thread, with room for what AVX saves. */
__attribute__((unused)) static void signal_stack(void)
{
	stack_t stack = { .ss_size = 1 << 16 };

	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&stack, NULL);
}

__attribute__((unused)) static void handle(int signo, void (*handler)(int, siginfo_t *, void *),
					   int flags)
{
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	sigaction(signo, &act, NULL);
}

/* Which signal `act` gets; signo 0 if none. */
__attribute__((unused, noinline)) static struct caught fault_of(void (*act)(void *), void *arg)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
	static int ready;

	if (!ready)
		signal_stack();
	ready = 1;
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		handle(signals[i], catch_it, SA_ONSTACK);
	caught_now = (struct caught){ 0 };
	if (!sigsetjmp(caught_jump, 1))
		act(arg);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
	return caught_now;
}

__attribute__((unused)) static void
expect(const char *name, void (*act)(void *), void *arg, int signo, int code, unsigned long addr)
{
	struct caught got = fault_of(act, arg);

	check(name, got.signo == signo && got.code == code && got.addr == addr,
	      "signal %d code %d addr %lx, not %d %d %lx (at %lx)", got.signo, got.code, got.addr,
	      signo, code, addr, got.rip);
}

/* A signal every `microseconds`, to this thread. */
__attribute__((unused)) static timer_t storm(int signo, long microseconds)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signo };
	struct itimerspec often = { { 0, microseconds * 1000 }, { 0, microseconds * 1000 } };
	timer_t timer;

	event._sigev_un._tid = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL))
		check("storm", 0, "no timer: %s", strerror(errno));
	return timer;
}

__attribute__((unused)) static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* Whether to go on: for that long, and until there is enough, which takes longer on a busy host. */
__attribute__((unused)) static int going(double begun, double seconds, int enough)
{
	double spent = now() - begun;

	return spent < seconds || (!enough && spent < 30);
}

/* How many interrupts of the local timer there were, on all CPUs. */
__attribute__((unused)) static unsigned long ticks(void)
{
	char line[1024];
	unsigned long sum = 0;
	FILE *file = fopen("/proc/interrupts", "r");

	while (file && fgets(line, sizeof(line), file)) {
		char *at = strstr(line, "LOC:");
		int used = 0;
		unsigned long count;

		for (at = at ? at + 4 : NULL; at && sscanf(at, "%lu%n", &count, &used) == 1; at += used)
			sum += count;
	}
	if (file)
		fclose(file);
	return sum;
}

/* The address of a symbol of the kernel, 0 if it is not told. */
__attribute__((unused)) static unsigned long kernel_symbol(const char *wanted)
{
	char line[512], name[256];
	unsigned long address, found = 0;
	FILE *file = fopen("/proc/kallsyms", "r");

	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx %*c %255s", &address, name) == 2 && !strcmp(name, wanted))
			found = address;
	if (file)
		fclose(file);
	return found;
}

/* Writes a file of /proc; 0 or -errno. */
__attribute__((unused)) static int put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	int error = 0;

	if (!file)
		return -errno;
	if (fputs(text, file) == EOF || fflush(file))
		error = -errno;
	fclose(file);
	return error;
}

/* The other tasks want this CPU, too. */
__attribute__((unused)) static pid_t hog(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			__asm__ volatile("pxor %%xmm0, %%xmm0; mov $7, %%r15" ::: "xmm0", "r15");
	return pid;
}

__attribute__((unused)) static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
#endif
