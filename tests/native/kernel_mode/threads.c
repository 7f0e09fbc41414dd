/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads: their making, what they wait for, their being cancelled in a call, and forks besides them. */
#include "calling.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 500

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int turn, total;
static volatile bool done;
static bool cleaned, unwound;
static int tube[2];

static void *take_turns(void *argument)
{
    int mine = (int)(intptr_t)argument;

    pthread_barrier_wait(&barrier);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&lock);
        while (turn != mine)
            pthread_cond_wait(&turned, &lock);
        turn = (turn + 1) % THREADS;
        total++;
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

void case_threads(void)
{
    pthread_t threads[THREADS];
    void *ended;

    EXPECT(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (intptr_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, take_turns, (void *)i) == 0);
    for (intptr_t i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], &ended) == 0 && ended == (void *)i);
    EXPECT(total == THREADS * ROUNDS);
}

static void clean(void *argument)
{
    cleaned = argument == tube;
}

static void unwind(int *argument)
{
    unwound = *argument == 5;
}

static void *read_for_ever(void *argument)
{
    __attribute__((cleanup(unwind))) int local = 5;
    char byte;

    pthread_cleanup_push(clean, argument);
    EXPECT(read(tube[0], &byte, 1) == 2);
    pthread_cleanup_pop(0);
    return NULL;
}

/* The unwinder finds its way from the call, since the kernel's frame has the program's own address. */
void case_cancel(void)
{
    pthread_t thread;
    void *ended;

    EXPECT(pipe(tube) == 0);
    for (int i = 0; i < 20; i++) {
        cleaned = unwound = false;
        EXPECT(pthread_create(&thread, NULL, read_for_ever, tube) == 0);
        usleep(5000);
        EXPECT(pthread_cancel(thread) == 0);
        EXPECT(pthread_join(thread, &ended) == 0 && ended == PTHREAD_CANCELED);
        EXPECT(cleaned && unwound);
    }
}

static void *call_on(void *argument)
{
    while (!done)
        EXPECT(getppid() > 0);
    return argument;
}

void case_fork_in_thread(void)
{
    pthread_t thread;

    EXPECT(pthread_create(&thread, NULL, call_on, NULL) == 0);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        int status;

        EXPECT(child >= 0);
        if (!child)
            _exit(getppid() > 0 ? i : 200);
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == i);
    }
    done = true;
    EXPECT(pthread_join(thread, NULL) == 0);
}
