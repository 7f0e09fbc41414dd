/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job's text: a directive a line, its value up to the end of the line, with %XX for line ends and per cent signs. */
#include "job.h"

#include <stdio.h>
#include <string.h>

#include "hex.h"

static char wrong[256];

static const char *complain(const char *what, const char *directive, const char *value)
{
    snprintf(wrong, sizeof wrong, "%s: %s %s", what, directive, value);
    return wrong;
}

/* A byte of two digits, or -1. */
static int hex_byte(const char *digits)
{
    int high = hex_digit(digits[0]), low = high < 0 ? -1 : hex_digit(digits[1]);

    return low < 0 ? -1 : high << 4 | low;
}

static bool decode(char *value)
{
    char *out = value;

    for (const char *in = value; *in; in++) {
        int byte = *in;

        if (*in == '%') {
            byte = hex_byte(in + 1);
            if (byte <= 0)
                return false;
            in += 2;
        }
        *out++ = (char)byte;
    }
    *out = '\0';
    return true;
}

static bool number(const char *digits, uint64_t *value)
{
    *value = 0;
    for (const char *p = digits; *p; p++) {
        if (*p < '0' || *p > '9' || *value > UINT64_MAX / 10 - 1)
            return false;
        *value = *value * 10 + (uint64_t)(*p - '0');
    }
    return *digits;
}

static bool seed(const char *digits, struct job *job)
{
    for (job->seed_bytes = 0; *digits; digits += 2) {
        int byte = hex_byte(digits);

        if (byte < 0 || job->seed_bytes == JOB_SEED_MAX_BYTES)
            return false;
        job->seed[job->seed_bytes++] = (uint8_t)byte;
    }
    return job->seed_bytes;
}

/* How the program then calls the kernel is a matter of its environment. */
static bool mode(const char *value)
{
    return !strcmp(value, "kernel") || !strcmp(value, "kernel-direct") || !strcmp(value, "kernel-skip");
}

static bool word(char *value, char **list, size_t *n)
{
    if (*n == JOB_WORDS_MAX)
        return false;
    list[(*n)++] = value;
    return true;
}

static const char *directive(char *name, char *value, struct job *job, bool *known)
{
    bool good = true;

    *known = true;
    if (!decode(value))
        return complain("not well encoded", name, value);
    if (!strcmp(name, "arg"))
        good = word(value, job->argv, &job->n_argv);
    else if (!strcmp(name, "env"))
        good = strchr(value, '=') && word(value, job->env, &job->n_env);
    else if (!strcmp(name, "cwd"))
        job->cwd = value;
    else if (!strcmp(name, "region"))
        job->region = value, good = *value && strlen(value) < 256;
    else if (!strcmp(name, "mode"))
        job->mode = value, good = mode(value);
    else if (!strcmp(name, "seconds"))
        good = number(value, &job->seconds) && job->seconds < INT64_MAX / 1000000000;
    else if (!strcmp(name, "phase-ns"))
        good = number(value, &job->phase_ns) && job->phase_ns < INT64_MAX;
    else if (!strcmp(name, "date"))
        good = number(value, &job->date_seconds) && job->date_seconds < INT64_MAX;
    else if (!strcmp(name, "holes"))
        good = number(value, &job->holes);
    else if (!strcmp(name, "pages"))
        good = number(value, &job->pages) && job->pages < UINT32_MAX;
    else if (!strcmp(name, "seed"))
        good = seed(value, job);
    else if (!strcmp(name, "module") || !strcmp(name, "optional-module")) {
        good = job->n_modules < JOB_MODULES_MAX;
        if (good) {
            job->optional[job->n_modules] = *name == 'o';
            job->modules[job->n_modules++] = value;
        }
    } else
        *known = false;
    return good ? NULL : complain("bad value, or too many", name, value);
}

const char *job_parse(char *text, struct job *job, void (*unknown)(const char *line))
{
    memset(job, 0, sizeof *job);
    job->cwd = "/";
    while (*text) {
        char *line = text, *end = line + strcspn(line, "\n"), *space;
        const char *failed;
        bool known;

        text = end + (*end == '\n');
        *end = '\0';
        if (!*line)
            continue;
        space = line + strcspn(line, " ");
        if (!*space) {
            unknown(line);
            continue;
        }
        *space = '\0';
        failed = directive(line, space + 1, job, &known);
        if (failed)
            return failed;
        if (!known)
            unknown(line);
    }
    return job->n_argv ? NULL : "no program: a job needs at least one line with arg";
}
