/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's init: what its parts offer each other. Until the snapshot nothing here depends on the job. */
#ifndef KDELTA_AGENT_H
#define KDELTA_AGENT_H

#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpio.h"
#include "job.h"

#define OUTPUT_FOLDER "/run/output" /* of the workload: a file system of its own, so that it cannot fill the memory */

/* channel.c: messages to the host, and a few lines on the console for people */
void message_start(const char *type);
void message_bytes(const void *bytes, size_t size);
void message_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
size_t message_file(const char *path, size_t limit_bytes);
void message_end(void);
void message(const char *type, const char *format, ...) __attribute__((format(printf, 2, 3)));
void console(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void finish(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void power_off(void);

/* small.c */
size_t read_file(const char *path, char *text, size_t size);
bool write_file(const char *path, const char *text);
int64_t now_ns(void);
void sleep_until_ns(int64_t monotonic_ns);

/* mounts.c */
void mounts_make(void);
void network_up(void);
void network_first_use(void);

/* group.c */
void group_make(void);
void group_join(void);
void load_run(void);

/* quiet.c */
struct quiet {
    bool reached;
    int64_t seconds;  /* of uptime */
    uint64_t switches, work_ns; /* in the last second: context switches, and run time of other tasks */
};
struct quiet quiet_wait(void);

/* facts.c */
void facts_send(const struct quiet *quiet);
void facts_send_modules(void);

/* handover.c */
void snapshot_point(void);
struct stream job_stream(void);

/* holes.c */
void holes_unpacked(void);
void holes_tell(uint64_t holes);

/* prepare.c */
void modules_load(const struct job *job);
void date_set(const struct job *job);
void clocks_join(void);
void random_fill(void);
void perturb(const struct job *job);
void perturb_group(const struct job *job);
void mode_set(const struct job *job);

/* run.c */
_Noreturn void run(const struct job *job);

#endif
