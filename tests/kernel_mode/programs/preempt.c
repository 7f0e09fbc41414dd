// SPDX-License-Identifier: GPL-2.0-or-later
// An endless loop is preempted by others, can be stopped, continued and killed; timers of all kinds reach it.
#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

static double cpu_seconds(pid_t pid)
{
	char path[64], text[1024], *at;
	unsigned long user = 0, kernel = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file))
		return -1;
	fclose(file);
	at = strrchr(text, ')');
	if (!at || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
		return -1;
	return (double)(user + kernel) / sysconf(_SC_CLK_TCK);
}

static void on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void shares(void)
{
	pid_t loops[3];
	double used[3], begun = now();
	long own = 0;

	on_one_cpu();
	for (int i = 0; i < 3; i++)
		loops[i] = hog();
	while (now() < begun + 2)
		own++;
	for (int i = 0; i < 3; i++)
		used[i] = cpu_seconds(loops[i]);
	check("loops-share-a-cpu", own > 1000 && used[0] > 0.1 && used[1] > 0.1 && used[2] > 0.1,
	      "%ld; %.2f %.2f %.2f s", own, used[0], used[1], used[2]);
	for (int i = 0; i < 3; i++)
		end(loops[i]);
}

static void killed(int signo, const char *name)
{
	pid_t pid = hog();
	int status;

	usleep(30000);
	kill(pid, signo);
	waitpid(pid, &status, 0);
	check(name, WIFSIGNALED(status) && WTERMSIG(status) == signo, "status %x", status);
}

static void stopped(void)
{
	pid_t pid = hog();
	double before, after;
	int status;

	usleep(30000);
	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	check("stopped", WIFSTOPPED(status), "status %x", status);
	before = cpu_seconds(pid);
	usleep(100000);
	check("it-stands", cpu_seconds(pid) == before, "%.2f s", cpu_seconds(pid));
	kill(pid, SIGCONT);
	usleep(200000);
	after = cpu_seconds(pid);
	check("it-goes-on", after > before, "%.2f s", after);
	end(pid);
}

static volatile int alarms;

static void alarmed(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	alarms++;
}

static void limited(void)
{
	static const struct rlimit second = { 1, 3 };
	pid_t pid = fork();
	int status;

	if (!pid) {
		setrlimit(RLIMIT_CPU, &second);
		for (;;)
			;
	}
	waitpid(pid, &status, 0);
	check("cpu-limit", WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU, "status %x", status);
}

static void timers(void)
{
	static const struct itimerval soon = { { 0, 0 }, { 0, 20000 } };
	static const int kinds[] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };
	static const int signals[] = { SIGALRM, SIGVTALRM, SIGPROF };

	for (int i = 0; i < 3; i++) {
		double begun = now();

		alarms = 0;
		handle(signals[i], alarmed, 0);
		setitimer(kinds[i], &soon, NULL);
		while (!alarms && now() < begun + 5)
			;
		check(i == 0 ? "real-timer" : i == 1 ? "virtual-timer" : "profiling-timer", alarms == 1, "%d",
		      alarms);
	}
}

static void sleeps(enum way way)
{
	static const struct timespec time = { 0, 30000000 };
	struct itimerspec once = { { 0, 0 }, { 0, 20000000 } };
	struct epoll_event event = { .events = EPOLLIN };
	double begun = now();
	uint64_t count = 0;
	long got = call4(way, SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);

	check_way(way, "sleeps", got == 0 && now() >= begun + 0.03, "%ld, %.3f s", got, now() - begun);
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), poll_file = epoll_create1(0);

	timerfd_settime(timer, 0, &once, NULL);
	epoll_ctl(poll_file, EPOLL_CTL_ADD, timer, &event);
	got = call6(way, SYS_epoll_wait, poll_file, (long)&event, 1, 5000, 0, 0);
	check_way(way, "polls", got == 1, "%ld", got);
	got = call3(way, SYS_read, timer, &count, sizeof(count));
	check_way(way, "timer-file", got == 8 && count == 1, "%ld, %lu", got, (unsigned long)count);
	close(timer);
	close(poll_file);
}

static void usage(void)
{
	struct rusage before, after;
	double begun = now(), seconds;

	getrusage(RUSAGE_SELF, &before);
	while (now() < begun + 0.5)
		for (volatile int i = 0; i < 10000; i++)
			;
	getrusage(RUSAGE_SELF, &after);
	seconds = after.ru_utime.tv_sec - before.ru_utime.tv_sec +
		  (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6;
	check("its-time-is-a-user's", seconds > 0.2, "%.2f s of user time", seconds);
}

int main(void)
{
	begin();
	shares();
	killed(SIGKILL, "killed");
	killed(SIGTERM, "terminated");
	stopped();
	limited();
	timers();
	usage();
	for (int way = 0; way < ways(); way++)
		sleeps(way);
	return finish();
}
