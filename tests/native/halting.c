/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin's lock between halts and the main loop without QEMU: a CPU that halts again and again, and a main loop that never rests.
 *
 * halting locked|unlocked HALTS: prints how many rounds found the CPU halted before its instructions were in the clock.
 * halting unasked: the main loop never asks the plugin. halting stopping: it waits in a round for the CPU to stop.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glib_api.h"
#include "halt.h"

static struct glib_source_functions asked;
static pthread_mutex_t global = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static _Atomic bool halted, accounted, done;
static _Atomic unsigned long rounds;
static unsigned long early, halts;
static bool locked;

glib_source *g_source_new(struct glib_source_functions *functions, unsigned int source_bytes)
{
    asked = *functions;
    return calloc(1, source_bytes);
}

void g_source_set_priority(glib_source *source, int priority) { (void)source, (void)priority; }

unsigned int g_source_attach(glib_source *source, glib_context *context)
{
    (void)context;
    free(source);
    return 1;
}

/* Gives the main loop time to begin a round, without sleeping. */
static void await_round(unsigned long before)
{
    for (int i = 0; i < 1000 && rounds == before; i++)
        sched_yield();
    for (int i = 0; i < 20; i++)
        sched_yield();
}

static void *cpu(void *unused)
{
    for (unsigned long i = 0; i < halts; i++) {
        unsigned long before = rounds;

        if (locked)
            halt_begins(0, NULL);
        halted = true;
        await_round(before);
        accounted = true;
        pthread_mutex_lock(&global);
        while (halted)
            pthread_cond_wait(&woken, &global);
        pthread_mutex_unlock(&global);
    }
    done = true;
    return unused;
}

static void round_of_main_loop(void)
{
    for (int i = 0; i < 3; i++) /* what a round does before it looks at the CPU */
        sched_yield();
    if (!halted)
        return;
    early += !accounted;
    while (!accounted)
        ;
    accounted = halted = false;
    pthread_cond_signal(&woken);
}

static void main_loop(void)
{
    int timeout_ms;

    pthread_mutex_lock(&global);
    while (!done) {
        if (locked)
            asked.prepare(NULL, &timeout_ms);
        pthread_mutex_unlock(&global);
        pthread_mutex_lock(&global);
        rounds++;
        if (locked)
            asked.check(NULL);
        round_of_main_loop();
    }
    pthread_mutex_unlock(&global);
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "", "hlt", NULL };
    const struct arch arch = { .special_names = names };
    pthread_t thread;
    int timeout_ms;

    if (argc < 2)
        return 2;
    halts = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    locked = strcmp(argv[1], "unlocked");
    halt_init(&arch);
    if (strcmp(argv[1], "unasked")) /* in QEMU the main loop goes round before the CPU starts */
        asked.check(NULL);
    if (strcmp(argv[1], "stopping"))
        asked.prepare(NULL, &timeout_ms);
    pthread_create(&thread, NULL, cpu, NULL);
    if (!strcmp(argv[1], "locked") || !locked)
        main_loop();
    pthread_join(thread, NULL);
    printf("%lu\n", early);
    return 0;
}
