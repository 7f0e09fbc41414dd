// SPDX-License-Identifier: GPL-2.0-or-later
// Restartable sequences: glibc has registered this thread, and a sequence that is interrupted goes to its abort handler.
#include "proof.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/rseq.h>

static volatile long handled;

/* Spins `rdi` rounds as a sequence: rax is 0 if it came to its end, 1 if it was aborted. */
__asm__(".text\nsequence:\n\tlea description(%rip), %rax\n\tmov %rax, 8(%rsi)\n"
	"first:\n\tdec %rdi\n\tjnz first\nlast:\n\txor %eax, %eax\n\tmovq $0, 8(%rsi)\n\tret\n"
	"\t.byte 0x0f, 0xb9, 0x3d\n\t.long 0x53053053\naborted:\n\tmov $1, %eax\n\tret\n"
	".data\n.balign 32\ndescription:\n\t.long 0, 0\n\t.quad first, last - first, aborted\n.text\n");
long sequence(long rounds, struct rseq *area);

static struct rseq *area(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

static void count(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	handled++;
}

static void *of_thread(void *arg)
{
	(void)arg;
	return (void *)(long)(area()->cpu_id == (unsigned)sched_getcpu());
}

int main(void)
{
	long aborted = 0, ended = 0;
	void *right;
	pthread_t thread;

	begin();
	if (!__rseq_size) {
		skip("sequences", "glibc has not registered any");
		return finish();
	}
	check("cpu", area()->cpu_id == (unsigned)sched_getcpu(), "%u", area()->cpu_id);
	pthread_create(&thread, NULL, of_thread, NULL);
	pthread_join(thread, &right);
	check("cpu-of-thread", right != NULL, "no");
	for (int i = 0; i < 100; i++)
		ended += !sequence(10, area());
	check("undisturbed", ended > 90, "%ld of 100", ended);
	handle(SIGRTMIN, count, 0);
	timer_t timer = storm(SIGRTMIN, 500);
	double begun = now();

	while (going(begun, 1, aborted > 50))
		aborted += sequence(1000000, area());
	timer_delete(timer);
	check("aborted-by-signals", aborted > 50 && handled > 50, "%ld, %ld signals", aborted, handled);
	pid_t other = hog();

	aborted = 0;
	for (begun = now(); going(begun, 1, aborted > 3);)
		aborted += sequence(10000000, area());
	end(other);
	check("aborted-by-preemption", aborted > 3, "%ld", aborted);
	return finish();
}
