/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regions of all tasks of a guest: calls and a time after them, and an idle guest for as long. */
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kdelta.h"

#define CALLS 4000
#define NS_PER_SECOND 1000000000ll

static const struct timespec window = {7, 0};

static long long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

int main(void)
{
    struct timespec as_long;
    long long begin;

    nanosleep(&window, NULL);
    begin = now();
    kdelta_begin("*calls");
    for (int i = 0; i < CALLS; i++)
        syscall(SYS_getppid);
    nanosleep(&window, NULL);
    kdelta_end();
    begin = now() - begin;
    as_long.tv_sec = begin / NS_PER_SECOND;
    as_long.tv_nsec = begin % NS_PER_SECOND;
    nanosleep(&window, NULL);
    kdelta_begin("*idle");
    nanosleep(&as_long, NULL);
    kdelta_end();
    return 0;
}
