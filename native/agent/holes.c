/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that came without their content: which of them the program left alone. What it read, mapped, executed or sent has another time
 * of access, so nothing has to be executed for this while it runs.
 */
#define _FILE_OFFSET_BITS 64
#include "agent.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#define FOLDERS_OPEN 16

static struct timespec unpacked;
static uint64_t left_alone;
static bool named;

void holes_unpacked(void)
{
    clock_gettime(CLOCK_REALTIME, &unpacked);
}

static bool is_later(const struct timespec *one, const struct timespec *other)
{
    return one->tv_sec != other->tv_sec ? one->tv_sec > other->tv_sec : one->tv_nsec > other->tv_nsec;
}

static bool is_of_the_guest(const char *path)
{
    return !strcmp(path, "/proc") || !strcmp(path, "/sys") || !strcmp(path, "/dev") || !strcmp(path, "/run");
}

static int look(const char *path, const struct stat *state, int type, struct FTW *walk)
{
    (void)walk;
    if (is_of_the_guest(path))
        return FTW_SKIP_SUBTREE;
    /* A program may give a file the time of access that it had, but not the time of that. */
    if (type != FTW_F || !cpio_is_hole(&state->st_atim, &state->st_mtim) || is_later(&state->st_ctim, &unpacked))
        return FTW_CONTINUE;
    left_alone++;
    if (named)
        message_bytes(path, strlen(path) + 1);
    return FTW_CONTINUE;
}

static void walk(void)
{
    nftw("/", look, FOLDERS_OPEN, FTW_PHYS | FTW_ACTIONRETVAL);
}

/* Whether times of access say nothing any more: the program is root. */
static bool are_times_off(const char *path)
{
    struct statvfs state;

    return statvfs(path, &state) || state.f_flag & ST_NOATIME;
}

void holes_tell(uint64_t holes)
{
    bool off = are_times_off("/") || are_times_off("/tmp");

    if (!holes)
        return;
    if (!off)
        walk();
    if (left_alone == holes)
        return;
    named = true;
    message_start("untouched");
    if (!off)
        walk();
    message_end();
}
