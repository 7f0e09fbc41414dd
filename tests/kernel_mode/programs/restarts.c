// SPDX-License-Identifier: GPL-2.0-or-later
// System calls that a signal or a stop interrupts: restarted, ended with EINTR, or continued, by each way.
#include "calls.h"

#include <linux/futex.h>
#include <poll.h>

static volatile int handled;

static void count(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	handled++;
}

/* A child that does `what` to this process after a moment, `times` times. */
static pid_t soon(int signo, int times, int file)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < times; i++) {
		usleep(15000);
		kill(parent, signo);
		if (signo == SIGSTOP) {
			usleep(15000);
			kill(parent, SIGCONT);
		}
	}
	usleep(15000);
	if (file >= 0 && write(file, "x", 1) != 1)
		_exit(1);
	_exit(0);
}

static void reads(enum way way)
{
	int pipes[2];
	char byte = 0;

	if (pipe(pipes))
		return;
	handled = 0;
	handle(SIGUSR1, count, SA_RESTART);
	pid_t pid = soon(SIGUSR1, 3, pipes[1]);
	long got = call3(way, SYS_read, pipes[0], &byte, 1);

	waitpid(pid, NULL, 0);
	check_way(way, "read-restarts", got == 1 && byte == 'x' && handled >= 1, "%ld, %d signals", got,
		  handled);
	handle(SIGUSR1, count, 0);
	/* On a busy host the signal may come before the call: the byte ends that then. */
	for (int tries = 0; tries < 20 && got != -EINTR; tries++) {
		pid = soon(SIGUSR1, 1, pipes[1]);
		got = call3(way, SYS_read, pipes[0], &byte, 1);
		waitpid(pid, NULL, 0);
	}
	check_way(way, "read-is-interrupted", got == -EINTR, "%ld", got);
	got = call3(way, SYS_read, pipes[0], &byte, 1);
	pid = soon(SIGSTOP, 2, pipes[1]);
	got = call3(way, SYS_read, pipes[0], &byte, 1);
	waitpid(pid, NULL, 0);
	check_way(way, "read-restarts-after-a-stop", got == 1, "%ld", got);
	close(pipes[0]);
	close(pipes[1]);
}

static void sleeps(enum way way)
{
	static const struct timespec time = { 0, 150000000 };
	struct timespec left = { 0, 0 };
	double begun = now();
	pid_t pid = soon(SIGSTOP, 2, -1);
	long got = call4(way, SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, &left);

	waitpid(pid, NULL, 0);
	check_way(way, "sleep-goes-on-after-a-stop", got == 0 && now() - begun >= 0.15, "%ld after %.3f s",
		  got, now() - begun);
	handle(SIGUSR1, count, SA_RESTART);
	/* On a busy host the signal may come before the call, or after. */
	for (int tries = 0; tries < 20 && got != -EINTR; tries++) {
		pid = soon(SIGUSR1, 1, -1);
		got = call4(way, SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, &left);
		waitpid(pid, NULL, 0);
	}
	check_way(way, "sleep-tells-what-is-left", got == -EINTR && left.tv_nsec > 0, "%ld, %ld ns", got,
		  left.tv_nsec);
}

static void polls(enum way way)
{
	double begun = now();
	pid_t pid = soon(SIGSTOP, 1, -1);
	long got = call3(way, SYS_poll, NULL, 0, 100);

	waitpid(pid, NULL, 0);
	check_way(way, "poll-goes-on-after-a-stop", got == 0 && now() - begun >= 0.1, "%ld after %.3f s", got,
		  now() - begun);
	struct timespec limit = { 0, 120000000 };
	int word = 0;

	pid = soon(SIGSTOP, 1, -1);
	got = call4(way, SYS_futex, &word, FUTEX_WAIT, 0, &limit);
	waitpid(pid, NULL, 0);
	check_way(way, "futex-goes-on-after-a-stop", got == -ETIMEDOUT, "%ld", got);
}

/* Calls in a storm of signals give what they give without. */
static void in_a_storm(enum way way)
{
	double begun = now();
	long wrong = 0, calls = 0;
	pid_t own = getpid();

	handled = 0;
	handle(SIGRTMIN, count, SA_RESTART);
	timer_t timer = storm(SIGRTMIN, 300);

	while (going(begun, 1, handled > 20)) {
		struct timespec time = { 0, 0 };

		wrong += call0(way, SYS_getpid) != own;
		wrong += call2(way, SYS_clock_gettime, CLOCK_MONOTONIC, &time) != 0 || !time.tv_sec;
		wrong += call1(way, SYS_close, -1) != -EBADF;
		calls += 3;
	}
	timer_delete(timer);
	check_way(way, "calls-in-a-storm", !wrong && handled > 20, "%ld of %ld, %d signals", wrong, calls,
		  handled);
}

int main(void)
{
	begin();
	for (int way = 0; way < ways(); way++) {
		reads(way);
		sleeps(way);
		polls(way);
		in_a_storm(way);
	}
	return finish();
}
