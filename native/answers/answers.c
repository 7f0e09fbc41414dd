/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loaded before kconfig's conf: remembers in a folder what the compiler and other tools answered to it, so that the next
 * config of the same tree is not asked some hundred times again. conf asks through popen alone. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static char folder[2048];

/* Streams that are plain files; conf has one open at a time. */
static FILE *files[8];

/* The next one's turn: what a tool starts on its own is none of ours. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("KDELTA_ANSWERS");

    if (path && strlen(path) < sizeof folder)
        strcpy(folder, path);
    unsetenv("LD_PRELOAD");
    unsetenv("KDELTA_ANSWERS");
}

static FILE *popen_of_libc(const char *command, const char *mode)
{
    FILE *(*next)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "popen");

    return next ? next(command, mode) : NULL;
}

static int pclose_of_libc(FILE *stream)
{
    int (*next)(FILE *) = (int (*)(FILE *))dlsym(RTLD_NEXT, "pclose");

    return next ? next(stream) : -1;
}

/* FNV-1a, 64 bits. The whole question stands in the file too, so equal hashes do no harm. */
static uint64_t hash(const char *text)
{
    uint64_t value = 0xcbf29ce484222325u;

    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 0x100000001b3u;
    return value;
}

static FILE *opened(FILE *file)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!files[i])
            return files[i] = file;
    }
    fclose(file);
    return NULL;
}

/* The stream behind the question, at the answer; NULL if it was another one. */
static FILE *known(const char *path, const char *command)
{
    FILE *file = fopen(path, "re");

    for (const char *p = command; file; p++) {
        int c = fgetc(file);

        if (c != (unsigned char)*p) {
            fclose(file);
            return NULL;
        }
        if (!*p)
            break;
    }
    return file ? opened(file) : NULL;
}

static void remember(const char *path, const char *command, const char *answer, size_t bytes)
{
    char partial[sizeof folder + 64];
    FILE *file;
    int bad;

    snprintf(partial, sizeof partial, "%s.%d", path, (int)getpid());
    file = fopen(partial, "we");
    if (!file)
        return;
    bad = fwrite(command, 1, strlen(command) + 1, file) != strlen(command) + 1;
    bad |= fwrite(answer, 1, bytes, file) != bytes;
    bad |= fclose(file) != 0;
    if (bad || rename(partial, path))
        unlink(partial);
}

EXPORTED FILE *popen(const char *command, const char *mode)
{
    static char answer[64 << 10];
    char path[sizeof folder + 32];
    size_t bytes;
    FILE *stream;

    if (!*folder || strcmp(mode, "r"))
        return popen_of_libc(command, mode);
    snprintf(path, sizeof path, "%s/%016llx", folder, (unsigned long long)hash(command));
    stream = known(path, command);
    if (stream)
        return stream;
    stream = popen_of_libc(command, mode);
    if (!stream)
        return NULL;
    bytes = fread(answer, 1, sizeof answer, stream);
    pclose_of_libc(stream);
    if (bytes == sizeof answer)
        return popen_of_libc(command, mode);
    remember(path, command, answer, bytes);
    stream = known(path, command);
    return stream ? stream : popen_of_libc(command, mode);
}

EXPORTED int pclose(FILE *stream)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i] == stream) {
            files[i] = NULL;
            return fclose(stream);
        }
    }
    return pclose_of_libc(stream);
}
