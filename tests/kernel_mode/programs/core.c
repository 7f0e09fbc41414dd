// SPDX-License-Identifier: GPL-2.0-or-later
// Leaves a core file with known registers, a known stack and two threads, and says it in hexadecimal.
#include "proof.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

int known = 0x5eed;

__attribute__((noinline)) void third(long value)
{
	__asm__ volatile("mov $0x1111, %%r12\n\tmov $0x2222, %%r13\n\tmov $0x3333, %%r14\n\tmov %0, %%r15\n\t"
			 "movl $1, 0x18" : : "r"(value) : "r12", "r13", "r14", "r15");
}

__attribute__((noinline)) void second(long value)
{
	third(value + 1);
	__asm__ volatile("");
}

__attribute__((noinline)) void first(long value)
{
	second(value + 1);
	__asm__ volatile("");
}

static void *waits(void *arg)
{
	pause();
	return arg;
}

/* As lines "core OFFSET HEX", without what is all zero. */
static void ship(void)
{
	static const unsigned char zeros[1024];
	static unsigned char piece[sizeof(zeros)];
	static char line[2 * sizeof(piece) + 1];
	ssize_t got;
	long sent = 0;
	int from = open("/tmp/core", O_RDONLY);

	for (; (got = read(from, piece, sizeof(piece))) > 0; sent += got) {
		if (!memcmp(piece, zeros, (size_t)got))
			continue;
		for (ssize_t i = 0; i < got; i++)
			sprintf(line + 2 * i, "%02x", piece[i]);
		printf("core %ld %s\n", sent, line);
	}
	check("sent", sent > 4096, "%ld bytes", sent);
}

int main(void)
{
	int status;
	pid_t pid;

	begin();
	put("/proc/sys/kernel/core_uses_pid", "0");
	pid = fork();
	if (!pid) {
		pthread_t thread;

		pthread_create(&thread, NULL, waits, NULL);
		usleep(10000);
		first(40);
	}
	waitpid(pid, &status, 0);
	check("dumped", WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && WCOREDUMP(status), "status %x",
	      status);
	ship();
	return finish();
}
