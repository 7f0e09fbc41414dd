/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree that is compiled: its files as old as each other, its objects removed before and checked after. */
#include "kbuild.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDERS_OPEN 16
#define CRC_POLYNOMIAL 0xedb88320u /* of CRC-32 (ISO 3309), reversed, as zlib has it */

static char *read_all(const char *path, size_t *size)
{
    int fd = (int)must(open(path, O_RDONLY | O_CLOEXEC), path);
    struct stat st;
    char *text;

    must(fstat(fd, &st), path);
    *size = (size_t)st.st_size;
    text = malloc(*size + 1);
    if (!text || read(fd, text, *size) != st.st_size)
        fail("%s cannot be read", path);
    text[*size] = '\0';
    close(fd);
    return text;
}

static uint32_t crc32(const char *bytes, size_t size)
{
    uint32_t crc = ~0u;

    for (; size; size--, bytes++) {
        crc ^= (uint8_t)*bytes;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
    }
    return ~crc;
}

/* make takes what is newer than what was made of it for changed; so nothing is. */
static int make_old(const char *path, const struct stat *st, int type, struct FTW *at)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

    (void)st, (void)type, (void)at;
    must(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), path);
    return 0;
}

/* The next line of a text, without its end; NULL after the last. */
static char *next_line(char **text)
{
    return strsep(text, "\n");
}

static void load_words(struct tree *tree, char *text)
{
    for (char *line; (line = next_line(&text));) {
        if (!*line)
            continue;
        if (tree->n_words == MAX_WORDS)
            fail("more than %d words for make", MAX_WORDS);
        tree->words[tree->n_words++] = line;
    }
}

static void load_objects(struct tree *tree, char *text)
{
    for (char *line, *end; (line = next_line(&text));) {
        if (!*line)
            continue;
        if (tree->n_objects == MAX_OBJECTS)
            fail("more than %d objects", MAX_OBJECTS);
        struct object *object = &tree->objects[tree->n_objects++];

        object->crc = (uint32_t)strtoul(line, &end, 16);
        if (*end != ' ')
            fail("not an object: %s", line);
        object->path = end + 1;
    }
}

void tree_load(struct tree *tree, const char *place)
{
    char path[256];
    size_t size;

    tree->place = place;
    snprintf(path, sizeof path, "%s.make", place);
    load_words(tree, read_all(path, &size));
    snprintf(path, sizeof path, "%s.objects", place);
    load_objects(tree, read_all(path, &size));
    must(nftw(place, make_old, FOLDERS_OPEN, FTW_PHYS), place);
    must(chdir(place), place);
}

/* The .cmd file of an object: how it was made the last time. */
static void cmd_path(const struct object *object, char *path, size_t size)
{
    const char *name = strrchr(object->path, '/');

    name = name ? name + 1 : object->path;
    snprintf(path, size, "%.*s.%s.cmd", (int)(name - object->path), object->path, name);
}

static void remove_file(const char *path)
{
    if (unlink(path) && errno != ENOENT)
        fail("%s: %s", path, strerror(errno));
}

void tree_remove_objects(const struct tree *tree)
{
    char cmd[256];

    for (size_t i = 0; i < tree->n_objects; i++) {
        cmd_path(&tree->objects[i], cmd, sizeof cmd);
        remove_file(cmd);
        remove_file(tree->objects[i].path);
    }
}

void tree_check_objects(const struct tree *tree, size_t wanted)
{
    for (size_t i = 0; i < tree->n_objects; i++) {
        const struct object *object = &tree->objects[i];
        char *bytes, cmd[256];
        size_t size;

        if (i >= wanted) {
            if (!access(object->path, F_OK))
                fail("%s was made, but was not asked for", object->path);
            continue;
        }
        bytes = read_all(object->path, &size);
        if (crc32(bytes, size) != object->crc)
            fail("%s is not what the same compiler makes of it on the host", object->path);
        free(bytes);
        cmd_path(object, cmd, sizeof cmd);
        must(access(cmd, F_OK), cmd);
    }
}
