/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names that were asked for, and how the host is asked for others. */
#define _GNU_SOURCE
#include "find_files.h"

#include <fcntl.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../agent/cpio.h"
#include "kdelta.h"
#include "kdelta_handover.h"

struct name {
    char *path;
    unsigned int asked; /* a bit a need */
};

static void *names;

static int by_path(const void *one, const void *other)
{
    return strcmp(((const struct name *)one)->path, ((const struct name *)other)->path);
}

static unsigned int bits_of(enum need need)
{
    switch (need) {
    case ITSELF:
        return 1;
    case TARGET:
        return 3;
    case CONTENT:
        return 7;
    case PROGRAM:
        return 15;
    default:
        return 16 | 3;
    }
}

static struct name *found(const char *path)
{
    struct name key = {.path = (char *)path}, **entry = tfind(&key, &names, by_path);

    return entry ? *entry : NULL;
}

static struct name *entered(const char *path)
{
    struct name *name = found(path);

    if (name)
        return name;
    name = calloc(1, sizeof *name);
    if (!name || !(name->path = strdup(path)) || !tsearch(name, &names, by_path))
        give_up("no memory for names");
    return name;
}

/* Whether the folder was listed, so that all of the file is there but its content. */
static bool was_listed(const char *path, enum need need)
{
    char folder[CPIO_PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct name *name;
    struct stat state;

    if ((need != ITSELF && need != TARGET) || slash == path || (size_t)(slash - path) >= sizeof folder)
        return false;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    name = found(folder);
    if (!name || !(name->asked & bits_of(LISTING) & 16))
        return false;
    return need == ITSELF || lstat(path, &state) || !S_ISLNK(state.st_mode);
}

static bool fill(struct stream *stream)
{
    stream->size = kdelta_next_piece(&stream->data);
    if (stream->size > KDELTA_PIECE_MAX_BYTES)
        give_up("the host did not answer");
    return stream->size;
}

static void ask(const char *path, enum need need)
{
    struct stream stream = {.fill = fill};
    char kind = (char)need;
    const char *wrong;
    int root;

    kdelta_send("ask\n", 4);
    kdelta_send(&kind, 1);
    kdelta_send(path, strlen(path));
    KDELTA_MARK(KDELTA_MESSAGE);
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    wrong = cpio_unpack(&stream, root);
    close(root);
    if (wrong)
        give_up("%s", wrong);
}

static bool is_of_the_guest(const char *path)
{
    static const char *const folders[] = {"/proc", "/sys", "/dev", "/run"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t size = strlen(folders[i]);

        if (!strncmp(path, folders[i], size) && (!path[size] || path[size] == '/'))
            return true;
    }
    return false;
}

void name_needed(const char *path, enum need need)
{
    struct name *name;
    unsigned int bits = bits_of(need);

    if (is_of_the_guest(path) || was_listed(path, need))
        return;
    name = entered(path);
    if ((name->asked & bits) == bits)
        return;
    name->asked |= bits;
    ask(path, need);
}
