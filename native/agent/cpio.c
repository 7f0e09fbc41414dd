/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a cpio archive ("newc": ASCII headers, everything padded to 4 bytes) and unpacks it.
 *
 * Two things are kdelta's own, in fields that mean nothing for files: the nanoseconds of the time, and the size of a file of which no
 * content is carried.
 */
#define _GNU_SOURCE
#if __SIZEOF_POINTER__ == 4
#define _FILE_OFFSET_BITS 64
#endif
#include "cpio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hex.h"

#define HEADER_BYTES 110
#define FIELD_BYTES 8

/* In the order of the header; what has no name here is not used. */
enum field { MODE = 1, TIME = 5, FILE_SIZE = 6, NANOSECONDS = 8, HOLE_HIGH = 9, HOLE_LOW = 10, NAME_SIZE = 11, FIELDS = 13 };

struct entry {
    mode_t mode;
    size_t size;
    off_t hole;          /* at the end of a file */
    struct timespec time; /* of modification; 0: when it is unpacked */
};

static char wrong[CPIO_PATH_MAX + 128];

__attribute__((format(printf, 1, 2))) static const char *complain(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(wrong, sizeof wrong, format, arguments);
    va_end(arguments);
    return wrong;
}

/* Copies the next bytes to `to`, or passes over them when that is NULL. */
static bool take(struct stream *stream, void *to, size_t size)
{
    uint8_t *out = to;

    while (size) {
        size_t part;

        if (!stream->size && !stream->fill(stream))
            return false;
        part = size < stream->size ? size : stream->size;
        if (out)
            out = (uint8_t *)memcpy(out, stream->data, part) + part;
        stream->data += part;
        stream->size -= part;
        size -= part;
    }
    return true;
}

static size_t padding(size_t size)
{
    return -size & 3;
}

static bool parse_hex(const char *digits, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < FIELD_BYTES; i++) {
        int digit = hex_digit(digits[i]);

        if (digit < 0)
            return false;
        *value = *value << 4 | (uint32_t)digit;
    }
    return true;
}

bool cpio_clean_path(const char *name, char *clean)
{
    size_t size = 0;

    while (*name) {
        size_t part = strcspn(name, "/");

        if (part == 2 && !memcmp(name, "..", 2))
            return false;
        if (part && !(part == 1 && *name == '.')) {
            if (size + 1 + part >= CPIO_PATH_MAX)
                return false;
            if (size)
                clean[size++] = '/';
            memcpy(clean + size, name, part);
            size += part;
        }
        name += part;
        name += *name == '/';
    }
    clean[size] = '\0';
    return true;
}

/* The folders above a path that are not there yet. */
static void make_parents(int root, char *path)
{
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdirat(root, path, 0755); /* when it fails, making the file says why */
        *slash = '/';
    }
}

static bool has_time(const struct entry *entry)
{
    return entry->time.tv_sec || entry->time.tv_nsec;
}

/* A nanosecond before: any kernel then sets it when the file is read, also one that does so only where it is older. */
static struct timespec accessed_of_hole(struct timespec modified)
{
    if (modified.tv_nsec)
        modified.tv_nsec--;
    else
        modified.tv_sec--, modified.tv_nsec = 999999999;
    return modified;
}

bool cpio_is_hole(const struct timespec *accessed, const struct timespec *modified)
{
    struct timespec expected = accessed_of_hole(*modified);

    return accessed->tv_sec == expected.tv_sec && accessed->tv_nsec == expected.tv_nsec;
}

static void set_time(int root, const char *path, const struct entry *entry)
{
    struct timespec times[2] = {entry->time, entry->time};
    struct stat state;

    if (entry->hole && !has_time(entry) && !fstatat(root, path, &state, AT_SYMLINK_NOFOLLOW))
        times[1] = state.st_mtim;
    if (entry->hole)
        times[0] = accessed_of_hole(times[1]);
    if (entry->hole || has_time(entry))
        utimensat(root, path, times, AT_SYMLINK_NOFOLLOW);
}

static const char *unpack_file(struct stream *stream, int root, const char *path, const struct entry *entry)
{
    size_t size = entry->size;
    int fd;

    unlinkat(root, path, 0); /* a program that runs, or a link, is replaced and not written to */
    fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return complain("%s: %s", path, strerror(errno));
    while (size) {
        ssize_t written;

        if (!stream->size && !stream->fill(stream)) {
            close(fd);
            return complain("the archive ends within %s", path);
        }
        written = write(fd, stream->data, size < stream->size ? size : stream->size);
        if (written < 0) {
            complain("%s: %s", path, strerror(errno));
            close(fd);
            return wrong;
        }
        stream->data += written;
        stream->size -= (size_t)written;
        size -= (size_t)written;
    }
    if (entry->hole && ftruncate(fd, entry->hole)) {
        complain("%s: %s", path, strerror(errno));
        close(fd);
        return wrong;
    }
    fchmod(fd, entry->mode & 07777);
    close(fd);
    set_time(root, path, entry);
    return NULL;
}

static const char *unpack_link(struct stream *stream, int root, const char *path, const struct entry *entry)
{
    char target[CPIO_PATH_MAX];

    if (!entry->size || entry->size >= sizeof target)
        return complain("%s: a link of %zu bytes", path, entry->size);
    if (!take(stream, target, entry->size))
        return complain("the archive ends within %s", path);
    target[entry->size] = '\0';
    unlinkat(root, path, 0);
    if (symlinkat(target, root, path))
        return complain("%s: %s", path, strerror(errno));
    set_time(root, path, entry);
    return NULL;
}

/* One that is there stays; it gets the mode and the time of an entry with a time, which comes again after all that is in it. */
static const char *unpack_folder(struct stream *stream, int root, const char *path, const struct entry *entry)
{
    if (*path && mkdirat(root, path, entry->mode & 07777) && errno != EEXIST)
        return complain("%s: %s", path, strerror(errno));
    if (*path && has_time(entry))
        fchmodat(root, path, entry->mode & 07777, 0);
    set_time(root, *path ? path : ".", entry);
    return take(stream, NULL, entry->size) ? NULL : complain("the archive ends within %s", path);
}

static const char *unpack_entry(struct stream *stream, int root, const char *name, const struct entry *entry)
{
    char path[CPIO_PATH_MAX];

    if (!cpio_clean_path(name, path))
        return complain("unsafe path: %s", name);
    if (!*path && !S_ISDIR(entry->mode))
        return complain("not a path of a file: %s", name);
    make_parents(root, path);
    switch (entry->mode & S_IFMT) {
    case S_IFREG:
        return unpack_file(stream, root, path, entry);
    case S_IFLNK:
        return unpack_link(stream, root, path, entry);
    case S_IFDIR:
        return unpack_folder(stream, root, path, entry);
    default:
        return complain("%s: neither file, folder nor link", path);
    }
}

const char *cpio_unpack(struct stream *stream, int root)
{
    for (;;) {
        char header[HEADER_BYTES], name[CPIO_PATH_MAX];
        uint32_t field[FIELDS];
        const char *failed;

        if (!take(stream, header, sizeof header))
            return complain("the archive ends without a trailer");
        if (memcmp(header, "070701", 6))
            return complain("not a cpio archive (newc)");
        for (int i = 0; i < FIELDS; i++)
            if (!parse_hex(header + 6 + i * FIELD_BYTES, &field[i]))
                return complain("a header with something else than hexadecimal digits");
        if (!field[NAME_SIZE] || field[NAME_SIZE] > sizeof name)
            return complain("a name of %u bytes", (unsigned)field[NAME_SIZE]);
        if (!take(stream, name, field[NAME_SIZE]) || !take(stream, NULL, padding(HEADER_BYTES + field[NAME_SIZE])))
            return complain("the archive ends within a name");
        if (strnlen(name, sizeof name) != field[NAME_SIZE] - 1)
            return complain("a name that does not end where its size says");
        if (!strcmp(name, "TRAILER!!!"))
            return NULL;
        failed = unpack_entry(stream, root, name,
                              &(struct entry){
                                  .mode = field[MODE],
                                  .size = field[FILE_SIZE],
                                  .hole = (off_t)((uint64_t)field[HOLE_HIGH] << 32 | field[HOLE_LOW]),
                                  .time = {.tv_sec = field[TIME], .tv_nsec = (long)field[NANOSECONDS]},
                              });
        if (failed)
            return failed;
        if (!take(stream, NULL, padding(field[FILE_SIZE])))
            return complain("the archive ends after %s", name);
    }
}
