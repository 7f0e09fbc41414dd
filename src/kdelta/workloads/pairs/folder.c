/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A folder with files for each CPU. */
#include "pairs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

static char top[PATH_BYTES], folders[CPUS][PATH_BYTES], files[CPUS][PATH_BYTES];

static __attribute__((format(printf, 2, 3))) const char *path_make(char path[PATH_BYTES], const char *format, ...)
{
    va_list values;
    int size;

    va_start(values, format);
    size = vsnprintf(path, PATH_BYTES, format, values);
    va_end(values);
    if (size < 0 || size >= PATH_BYTES) {
        errno = ENAMETOOLONG;
        fail("--dir");
    }
    return path;
}

/* One that is there may be another user's, who waits for what is written through links in it. */
static void folder_make(const char *path)
{
    struct stat facts;

    if (!mkdir(path, 0700))
        return;
    if (errno != EEXIST || lstat(path, &facts) || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid())
        fail(path);
}

static const char *small_file(unsigned cpu, unsigned index)
{
    static char path[PATH_BYTES];

    return path_make(path, "%s/small-%u", folders[cpu], index);
}

static void file_make(const char *path, size_t size)
{
    static char bytes[FILE_BYTES];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        fail(path);
    close(fd);
}

void folders_make(const char *parent)
{
    folder_make(path_make(top, "%s/kdelta-pairs", parent));
    for (unsigned cpu = 0; cpu < CPUS; cpu++) {
        folder_make(path_make(folders[cpu], "%s/%u", top, cpu));
        file_make(path_make(files[cpu], "%s/file", folders[cpu]), FILE_BYTES);
        for (unsigned i = 0; i < SMALL_FILES; i++)
            file_make(small_file(cpu, i), 1);
    }
}

void folders_remove(void)
{
    for (unsigned cpu = 0; cpu < CPUS; cpu++) {
        for (unsigned i = 0; i < SMALL_FILES; i++)
            unlink(small_file(cpu, i));
        unlink(files[cpu]);
        rmdir(folders[cpu]);
    }
    rmdir(top);
}

void choose_files(long object)
{
    for (unsigned cpu = 0; cpu < CPUS; cpu++) {
        struct side *side = &sides[cpu];
        unsigned of = object == OWN ? cpu : 0;

        side->folder = folders[of];
        side->file = files[of];
        side->offset = cpu * FILE_BYTES / CPUS;
        path_make(side->name, "%s/new-%u", side->folder, cpu);
    }
}
