// SPDX-License-Identifier: GPL-2.0-or-later
// x87, SSE and AVX state: kept over interrupts, other tasks, faults, signals, system calls and fork.
#include "calls.h"

#include <cpuid.h>
#include <fcntl.h>
#include <immintrin.h>

struct vectors {
	unsigned char xmm[16][32];
	double x87[4];
	unsigned mxcsr;
	unsigned short control;
} __attribute__((aligned(32)));

static struct vectors wanted, found;
static int with_avx;
static volatile long handled;

static void load(const struct vectors *of)
{
	__asm__ volatile("fninit\n\tfldcw %1\n\tldmxcsr %0\n\tfldl 24(%2)\n\tfldl 16(%2)\n\tfldl 8(%2)\n\tfldl (%2)"
			 : : "m"(of->mxcsr), "m"(of->control), "r"(of->x87));
	if (with_avx)
		__asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
				 "\tvmovdqa 32*\\n(%0), %%ymm\\n\n.endr" : : "r"(of->xmm));
	else
		__asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
				 "\tmovdqa 32*\\n(%0), %%xmm\\n\n.endr" : : "r"(of->xmm));
}

static void store(struct vectors *to)
{
	if (with_avx)
		__asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
				 "\tvmovdqa %%ymm\\n, 32*\\n(%0)\n.endr\n\tvzeroupper" : : "r"(to->xmm) : "memory");
	else
		__asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
				 "\tmovdqa %%xmm\\n, 32*\\n(%0)\n.endr" : : "r"(to->xmm) : "memory");
	__asm__ volatile("stmxcsr %0\n\tfnstcw %1\n\tfstpl (%2)\n\tfstpl 8(%2)\n\tfstpl 16(%2)\n\tfstpl 24(%2)\n\tfninit"
			 : "=m"(to->mxcsr), "=m"(to->control) : "r"(to->x87) : "memory");
}

/* How many parts differ, after which the state is an ordinary one again. */
static int differs(void)
{
	static const unsigned ordinary = 0x1f80;
	int wrong = 0;

	store(&found);
	__asm__ volatile("ldmxcsr %0" : : "m"(ordinary));
	for (int i = 0; i < 16; i++)
		wrong += memcmp(found.xmm[i], wanted.xmm[i], with_avx ? 32 : 16) != 0;
	wrong += memcmp(found.x87, wanted.x87, sizeof(found.x87)) != 0;
	return wrong + (found.mxcsr != wanted.mxcsr) + (found.control != wanted.control);
}

static void choose(unsigned seed)
{
	for (int i = 0; i < 16; i++)
		for (int byte = 0; byte < 32; byte++)
			wanted.xmm[i][byte] = (unsigned char)(seed * 31 + i * 7 + byte);
	for (int i = 0; i < 4; i++)
		wanted.x87[i] = seed + i + 0.25;
	wanted.mxcsr = 0x1f80 | (seed & 3) << 13;
	wanted.control = (unsigned short)(0x37f & ~0xc00) | (unsigned short)((seed & 3) << 10);
}

static void spoil(int signo, siginfo_t *info, void *context)
{
	static const struct vectors others = { .mxcsr = 0x1f80, .control = 0x37f };

	(void)signo, (void)info, (void)context;
	load(&others);
	__asm__ volatile("fninit");
	handled++;
}

static void spin(long rounds)
{
	__asm__ volatile("1:\tdec %0\n\tjnz 1b" : "+r"(rounds));
}

static void over_signals(void)
{
	double begun = now();
	long wrong = 0;

	handle(SIGRTMIN, spoil, 0);
	timer_t timer = storm(SIGRTMIN, 400);

	for (unsigned seed = 0; going(begun, 1, handled > 50); seed++) {
		choose(seed);
		load(&wanted);
		spin(200000);
		wrong += differs();
	}
	timer_delete(timer);
	check("over-signals", !wrong && handled > 50, "%ld, %ld signals", wrong, handled);
}

static void over_tasks(void)
{
	double begun = now();
	pid_t one = hog(), two = hog();
	long wrong = 0;

	for (unsigned seed = 0; now() < begun + 1; seed++) {
		choose(seed);
		load(&wanted);
		spin(300000);
		wrong += differs();
	}
	end(one);
	end(two);
	check("over-other-tasks", !wrong, "%ld", wrong);
}

static void over_faults(void)
{
	unsigned long size = 4096 * 512;
	long wrong = 0;

	for (unsigned seed = 0; seed < 5; seed++) {
		volatile char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		madvise((void *)pages, size, MADV_NOHUGEPAGE);
		choose(seed);
		load(&wanted);
		__asm__ volatile("mov %0, %%rax\n\tmov $512, %%ecx\n1:\tmovb $1, (%%rax)\n\tadd $4096, %%rax\n\t"
				 "dec %%ecx\n\tjnz 1b" : : "r"(pages) : "rax", "rcx", "memory");
		wrong += differs();
		munmap((void *)pages, size);
	}
	check("over-faults", !wrong, "%ld", wrong);
}

static void over_calls(enum way way)
{
	static const struct timespec moment = { 0, 2000000 };
	long wrong = 0;
	int status;

	choose(1);
	for (int i = 0; i < 20; i++) {
		load(&wanted);
		call4(way, SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, NULL);
		wrong += differs();
		load(&wanted);
		call0(way, SYS_sched_yield);
		wrong += differs();
	}
	check_way(way, "over-calls", !wrong, "%ld", wrong);
	load(&wanted);
	pid_t pid = call0(way, SYS_fork);

	wrong = differs();
	if (!pid)
		_exit(wrong != 0);
	waitpid(pid, &status, 0);
	check_way(way, "over-fork", !wrong && !status, "%ld, status %x", wrong, status);
}

int main(void)
{
	unsigned a, b, c = 0, d;

	begin();
	if (__get_cpuid(1, &a, &b, &c, &d) && c & bit_OSXSAVE && c & bit_AVX) {
		__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
		with_avx = (a & 6) == 6;
	}
	fact("with-avx", "%d", with_avx);
	over_signals();
	over_tasks();
	over_faults();
	for (int way = 0; way < ways(); way++)
		over_calls(way);
	return finish();
}
