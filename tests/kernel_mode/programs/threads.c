// SPDX-License-Identifier: GPL-2.0-or-later
// Threads: their TLS, mutexes, conditions, cancellation, signals to one of them, robust futexes, and the end of all.
#include "calls.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>

#define THREADS 8
#define ROUNDS 20000

static __thread long mine;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static long shared, turns, mixed_up;
static volatile long signalled;
static volatile pid_t got_by;

static void *add(void *arg)
{
	mine = (long)arg;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		shared++;
		pthread_mutex_unlock(&mutex);
		if (mine != (long)arg + i)
			__atomic_fetch_add(&mixed_up, 1, __ATOMIC_RELAXED);
		mine++;
	}
	return (void *)mine;
}

static void adding(void)
{
	pthread_t threads[THREADS];
	long wrong = 0;
	void *result;

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, add, (void *)(i << 32));
	for (long i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		wrong += (long)result != (i << 32) + ROUNDS;
	}
	check("mutex", shared == THREADS * ROUNDS, "%ld", shared);
	check("thread-local", !mixed_up && !wrong, "%ld, %ld", mixed_up, wrong);
}

static void *turn(void *arg)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < 2000; i++) {
		while (turns % 2 != (long)arg)
			pthread_cond_wait(&condition, &mutex);
		turns++;
		pthread_cond_signal(&condition);
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void turning(void)
{
	pthread_t threads[2];

	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, turn, (void *)i);
	for (long i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	check("condition", turns == 4000, "%ld", turns);
}

static void *spin(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (volatile long i = 0;; i++)
		if (arg)
			usleep(1000);
	return NULL;
}

static void cancelling(void)
{
	pthread_t spinning, sleeping;
	void *one, *two;

	pthread_create(&spinning, NULL, spin, NULL);
	pthread_create(&sleeping, NULL, spin, &one);
	usleep(20000);
	pthread_cancel(spinning);
	pthread_cancel(sleeping);
	pthread_join(spinning, &one);
	pthread_join(sleeping, &two);
	check("cancelled", one == PTHREAD_CANCELED && two == PTHREAD_CANCELED, "%p %p", one, two);
}

static void who(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	got_by = gettid();
	signalled++;
}

static volatile pid_t waiting;

static void *wait_for_it(void *arg)
{
	(void)arg;
	waiting = gettid();
	while (!signalled)
		;
	return NULL;
}

static void signalling(void)
{
	pthread_t thread;

	handle(SIGUSR1, who, 0);
	pthread_create(&thread, NULL, wait_for_it, NULL);
	while (!waiting)
		sched_yield();
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	check("signal-to-one", signalled == 1 && got_by == waiting, "%ld", signalled);
}

static void *die_with_it(void *arg)
{
	pthread_mutex_lock(arg);
	return NULL;
}

static void robust(void)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t left;
	pthread_t thread;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&left, &attributes);
	pthread_create(&thread, NULL, die_with_it, &left);
	pthread_join(thread, NULL);
	check("robust", pthread_mutex_lock(&left) == EOWNERDEAD, "no");
}

static int word;

static void *wake(void *arg)
{
	enum way way = (long)arg;

	usleep(5000);
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	call3(way, SYS_futex, &word, FUTEX_WAKE, 1);
	return NULL;
}

static void futexes(enum way way)
{
	struct timespec soon = { 0, 3000000 };
	pthread_t thread;
	long first;

	word = 0;
	first = call4(way, SYS_futex, &word, FUTEX_WAIT, 0, &soon);
	check_way(way, "futex-in-vain", first == -ETIMEDOUT, "%ld", first);
	pthread_create(&thread, NULL, wake, (void *)(long)way);
	while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST))
		first = call4(way, SYS_futex, &word, FUTEX_WAIT, 0, NULL);
	check_way(way, "futex", first == 0 || first == -EAGAIN, "%ld", first);
	pthread_join(thread, NULL);
}

/* One thread ends the process while the others spin, sleep and wait. */
static void ending(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		pthread_t thread;

		for (long i = 0; i < 4; i++)
			pthread_create(&thread, NULL, spin, i % 2 ? &thread : NULL);
		usleep(10000);
		exit(3);
	}
	waitpid(pid, &status, 0);
	check("one-ends-all", WEXITSTATUS(status) == 3, "status %x", status);
}

int main(void)
{
	begin();
	adding();
	turning();
	cancelling();
	signalling();
	robust();
	for (int way = 0; way < ways(); way++)
		futexes(way);
	ending();
	return finish();
}
