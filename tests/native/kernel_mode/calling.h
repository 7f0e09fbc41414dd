/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a program may expect of system calls however they are made. Each case ends the program when it is not so. */
#ifndef CALLING_H
#define CALLING_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(truth)                                                                              \
    do {                                                                                           \
        if (!(truth)) {                                                                            \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #truth, errno); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* registers.c */
void registers_check(void);
void case_registers(void);
void case_six(void);

/* signals.c */
void case_red_zone(void);
void case_eintr(void);
void case_restart(void);
void case_stopped(void);
void case_storm(void);
void case_longjmp(void);
void case_altstack(void);

/* threads.c */
void case_threads(void);
void case_cancel(void);
void case_fork_in_thread(void);

/* children.c */
void case_fork(void);
void case_vfork(void);
void case_spawn(void);
void case_exec(void);
void case_own_environment(void);

#endif
