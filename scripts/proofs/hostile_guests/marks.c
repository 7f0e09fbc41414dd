/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that use the marks of kdelta.h as they must not be used. */
#define _GNU_SOURCE
#include "kinds.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* --- marks --- */

static void iterations_without(void)
{
    for (int i = 0; i < 1000; i++)
        kdelta_iter();
    kdelta_end();
    kdelta_end();
    kdelta_join();
}

static void many_iterations(void)
{
    kdelta_begin("many");
    for (int i = 0; i < 1000000; i++)
        kdelta_iter();
    kdelta_end();
}

static void never_ends(void)
{
    kdelta_begin("a");
    kdelta_begin("b");
    kdelta_iter();
    kdelta_begin("");
}

static void *marks(void *name)
{
    for (int i = 0; i < 200; i++) {
        kdelta_begin(name);
        kdelta_iter();
        say(name);
        kdelta_end();
        if (i % 20 == 0)
            sched_yield();
    }
    return NULL;
}

static void marks_at_once(void)
{
    pthread_t one, other;

    pthread_create(&one, NULL, marks, "one");
    pthread_create(&other, NULL, marks, "other\nother");
    pthread_join(one, NULL);
    pthread_join(other, NULL);
}

static void marks_by_processes(void)
{
    for (int i = 0; i < 8; i++)
        if (!fork()) {
            marks("child");
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
}

static void into_marks(void)
{
    static const unsigned char code[] = {0x0f, 0x1f, 0x80, 0x04, 0x00, 0x64, 0x4b, 0xc3};
    unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (int i = 0; i < 7; i++) {
        if (!fork()) {
            memcpy(at, code, sizeof code);
            at[3] = (unsigned char)(1 + i);
            ((void (*)(void))(uintptr_t)(at + i))();
            _exit(0);
        }
        wait(NULL);
    }
}

static void own_code(void)
{
    unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    kdelta_begin("own code");
    for (int i = 0; i < 20000; i++) {
        at[0] = 0xb8;
        memcpy(at + 1, &i, 4);
        at[5] = 0xc3;
        ((int (*)(void))(uintptr_t)at)();
        kdelta_iter();
    }
    kdelta_end();
}

static void all_kinds(void)
{
    unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char code[] = {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x64, 0x4b, 0xc3};

    for (int kind = 9; kind < 256; kind++) {
        code[3] = (unsigned char)kind;
        memcpy(at, code, sizeof code);
        ((void (*)(void))(uintptr_t)at)();
    }
}

static void asks_for_a_job(void)
{
    for (int i = 0; i < 100; i++)
        KDELTA_MARK(KDELTA_JOB KDELTA_NEXT_BLOCK);
}

static void arms(void)
{
    for (int i = 0; i < 20000; i++)
        kdelta_arm();
}

static void turns_off(void)
{
    region("a");
    KDELTA_MARK(KDELTA_OFF);
    forever();
}

const struct kind mark_kinds[] = {
    {"iterations-without", iterations_without}, {"many-iterations", many_iterations}, {"never-ends", never_ends},
    {"marks-at-once", marks_at_once}, {"marks-by-processes", marks_by_processes}, {"into-marks", into_marks},
    {"own-code", own_code}, {"all-kinds", all_kinds}, {"asks-for-a-job", asks_for_a_job}, {"arms", arms},
    {"turns-off", turns_off}, {NULL, NULL},
};
