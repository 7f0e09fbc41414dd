/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin's turns without QEMU: a thread of CPUs that executes, notifies the main loop and becomes idle, and a main loop.
 *
 * turning turns|free STEPS: prints in how many of the main loop's rounds the CPUs executed, and whether both did all that they had to.
 * With turns.so loaded before.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static pthread_mutex_t global = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t kicked = PTHREAD_COND_INITIALIZER, known = PTHREAD_COND_INITIALIZER;
static bool is_known, started, has_work, done;
static _Atomic bool executes, in_round;
static unsigned long steps, executed, overlaps;
static int event;

static void call(const char *name)
{
    void (*function)(void) = dlsym(RTLD_DEFAULT, name);

    if (!function) {
        fprintf(stderr, "%s is not loaded\n", name);
        exit(2);
    }
    function();
}

static void notify(void)
{
    uint64_t one = 1;

    if (write(event, &one, sizeof one) != sizeof one)
        abort();
}

static void execute(void)
{
    executes = true;
    for (int i = 0; i < 50; i++) {
        overlaps += in_round;
        sched_yield();
    }
    executes = false;
    executed++;
}

static void *cpus(void *begin)
{
    pthread_mutex_lock(&global);
    while (!started) {
        is_known = true;
        pthread_cond_signal(&known);
        pthread_cond_wait(&kicked, &global);
        if (begin)
            call("turns_begin");
    }
    for (unsigned long i = 0; i < steps; i++) {
        pthread_mutex_unlock(&global);
        execute();
        notify();
        pthread_mutex_lock(&global);
        if (i % 3)
            continue;
        notify();
        while (!has_work)
            pthread_cond_wait(&kicked, &global);
        has_work = false;
    }
    done = true;
    notify();
    for (;;)
        pthread_cond_wait(&kicked, &global);
    return NULL;
}

/* A round of the main loop, with the global lock; it has something for idle CPUs to do. */
static void do_round(void)
{
    uint64_t count;

    in_round = true;
    for (int i = 0; i < 20; i++) {
        overlaps += executes;
        sched_yield();
    }
    if (read(event, &count, sizeof count) == sizeof count) {
        has_work = true;
        pthread_cond_signal(&kicked);
    }
    in_round = false;
}

int main(int argc, char **argv)
{
    static const struct timespec second = { .tv_sec = 1 };
    bool turns = argc > 1 && !strcmp(argv[1], "turns");
    pthread_t thread;

    steps = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    pthread_mutex_lock(&global);
    if (turns)
        call("turns_want");
    event = eventfd(0, EFD_NONBLOCK);
    pthread_create(&thread, NULL, cpus, turns ? (void *)1 : NULL);
    while (!is_known)
        pthread_cond_wait(&known, &global);
    is_known = false;
    pthread_cond_signal(&kicked);
    while (!is_known)
        pthread_cond_wait(&known, &global);
    started = true;
    pthread_cond_signal(&kicked);
    while (!done) {
        struct pollfd file = { .fd = event, .events = POLLIN };

        pthread_mutex_unlock(&global);
        ppoll(&file, 1, &second, NULL);
        pthread_mutex_lock(&global);
        do_round();
    }
    printf("%lu %s\n", overlaps, executed == steps ? "all" : "some");
    fflush(stdout);
    _exit(0);
}
