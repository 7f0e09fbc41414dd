/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the host asks for: a text, one directive a line. */
#ifndef KDELTA_JOB_H
#define KDELTA_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_MODULES_MAX 64
#define JOB_WORDS_MAX 4096
#define JOB_SEED_MAX_BYTES 64

struct job {
    const char *modules[JOB_MODULES_MAX];
    bool optional[JOB_MODULES_MAX]; /* each of them: the program can run without it */
    size_t n_modules;
    uint8_t seed[JOB_SEED_MAX_BYTES];
    size_t seed_bytes;
    uint64_t pages;
    uint64_t phase_ns;
    uint64_t date_seconds; /* since 1970, from which on the clock shows the date; 0: as it is */
    uint64_t holes;        /* files that are carried without their content */
    uint64_t seconds;      /* virtual; 0: no limit */
    const char *region; /* NULL: none */
    const char *mode;   /* in which the program runs and calls; NULL: user mode */
    const char *cwd;
    char *env[JOB_WORDS_MAX + 1]; /* both end with NULL */
    char *argv[JOB_WORDS_MAX + 1];
    size_t n_env, n_argv;
};

/* Fills `job` from text that ends with NUL; keeps pointers into it and changes it. `unknown` gets each line whose directive is
 * not known. Returns NULL, or what was wrong (until the next call). */
const char *job_parse(char *text, struct job *job, void (*unknown)(const char *line));

#endif
