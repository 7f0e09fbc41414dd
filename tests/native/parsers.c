/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the agent's parsers on standard input, so that tests can feed them:
 * parsers clean NAME | parsers unpack FOLDER CHUNK_BYTES | parsers job
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpio.h"
#include "job.h"

static uint8_t chunk[1 << 16];

static bool fill(struct stream *stream)
{
    ssize_t size = read(STDIN_FILENO, chunk, *(size_t *)stream->source);

    stream->data = chunk;
    stream->size = size > 0 ? (size_t)size : 0;
    return size > 0;
}

static int outcome(const char *wrong)
{
    if (wrong)
        printf("wrong %s\n", wrong);
    return wrong != NULL;
}

static int unpack(const char *folder, const char *chunk_bytes)
{
    size_t size = strtoul(chunk_bytes, NULL, 10);
    struct stream stream = {.fill = fill, .source = &size};
    int root = open(folder, O_RDONLY | O_DIRECTORY);

    if (root < 0 || size > sizeof chunk)
        return 2;
    return outcome(cpio_unpack(&stream, root));
}

static void unknown(const char *line)
{
    printf("unknown %s\n", line);
}

static int job_text(void)
{
    static char text[1 << 20];
    static struct job job;
    const char *wrong;

    if (fread(text, 1, sizeof text - 1, stdin) == sizeof text - 1)
        return 2;
    wrong = job_parse(text, &job, unknown);
    if (wrong)
        return outcome(wrong);
    for (size_t i = 0; i < job.n_modules; i++)
        printf("%smodule %s\n", job.optional[i] ? "optional-" : "", job.modules[i]);
    for (size_t i = 0; i < job.seed_bytes; i++)
        printf("%s%02x%s", i ? "" : "seed ", job.seed[i], i + 1 == job.seed_bytes ? "\n" : "");
    printf("pages %llu\nphase-ns %llu\ndate %llu\nseconds %llu\nregion %s\ncwd %s\n", (unsigned long long)job.pages,
           (unsigned long long)job.phase_ns, (unsigned long long)job.date_seconds, (unsigned long long)job.seconds,
           job.region ? job.region : "-", job.cwd);
    if (job.mode)
        printf("mode %s\n", job.mode);
    for (char **word = job.env; *word; word++)
        printf("env %s%c", *word, 0);
    for (char **word = job.argv; *word; word++)
        printf("arg %s%c", *word, 0);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "unpack"))
        return unpack(argv[2], argv[3]);
    if (argc == 2 && !strcmp(argv[1], "job"))
        return job_text();
    if (argc == 3 && !strcmp(argv[1], "clean")) {
        char clean[CPIO_PATH_MAX];

        if (!cpio_clean_path(argv[2], clean))
            return 1;
        fputs(clean, stdout);
        return 0;
    }
    return 2;
}
