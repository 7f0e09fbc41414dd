/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system calls that take the name of a file, or list a folder. */
#define _GNU_SOURCE
#include "find_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NONE (-1)
#define CWD (-2) /* instead of the number of an argument: names are relative to the working directory */

/* Names relative to a folder's descriptor, and the same by the older calls, which the newer architectures lack. */
const struct call calls[] = {
    {SYS_openat, 0, 1, 2, OPENED},
    {SYS_openat2, 0, 1, NONE, CONTENT},
    {SYS_statx, 0, 1, 2, TARGET},
    {SYS_faccessat, 0, 1, NONE, TARGET},
    {SYS_faccessat2, 0, 1, 3, TARGET},
    {SYS_execve, CWD, 0, NONE, PROGRAM},
    {SYS_execveat, 0, 1, NONE, PROGRAM},
    {SYS_readlinkat, 0, 1, NONE, ITSELF},
    {SYS_chdir, CWD, 0, NONE, TARGET},
    {SYS_chroot, CWD, 0, NONE, TARGET},
    {SYS_truncate, CWD, 0, NONE, CONTENT},
    {SYS_mkdirat, 0, 1, NONE, ITSELF},
    {SYS_unlinkat, 0, 1, NONE, ITSELF},
    {SYS_renameat2, 0, 1, NONE, CONTENT},
    {SYS_renameat2, 2, 3, NONE, ITSELF},
    {SYS_linkat, 0, 1, NONE, CONTENT},
    {SYS_linkat, 2, 3, NONE, ITSELF},
    {SYS_symlinkat, 1, 2, NONE, ITSELF},
    {SYS_mknodat, 0, 1, NONE, ITSELF},
    {SYS_fchmodat, 0, 1, NONE, TARGET},
    {SYS_fchownat, 0, 1, NONE, TARGET},
    {SYS_utimensat, 0, 1, NONE, TARGET},
    {SYS_statfs, CWD, 0, NONE, TARGET},
    {SYS_getxattr, CWD, 0, NONE, TARGET},
    {SYS_lgetxattr, CWD, 0, NONE, ITSELF},
    {SYS_listxattr, CWD, 0, NONE, TARGET},
    {SYS_llistxattr, CWD, 0, NONE, ITSELF},
    {SYS_setxattr, CWD, 0, NONE, TARGET},
    {SYS_removexattr, CWD, 0, NONE, TARGET},
    {SYS_inotify_add_watch, CWD, 1, NONE, TARGET},
    {SYS_getdents64, 0, NONE, NONE, LISTING},
#ifdef SYS_newfstatat
    {SYS_newfstatat, 0, 1, 3, TARGET},
#endif
#ifdef SYS_fstatat64
    {SYS_fstatat64, 0, 1, 3, TARGET},
#endif
#ifdef SYS_renameat
    {SYS_renameat, 0, 1, NONE, CONTENT},
    {SYS_renameat, 2, 3, NONE, ITSELF},
#endif
#ifdef SYS_statfs64
    {SYS_statfs64, CWD, 0, NONE, TARGET},
    {SYS_truncate64, CWD, 0, NONE, CONTENT},
    {SYS_stat64, CWD, 0, NONE, TARGET},
    {SYS_lstat64, CWD, 0, NONE, ITSELF},
#endif
#ifdef SYS_utimensat_time64
    {SYS_utimensat_time64, 0, 1, NONE, TARGET},
#endif
#ifdef SYS_open
    {SYS_open, CWD, 0, 1, OPENED},
    {SYS_creat, CWD, 0, NONE, TARGET},
    {SYS_stat, CWD, 0, NONE, TARGET},
    {SYS_lstat, CWD, 0, NONE, ITSELF},
    {SYS_access, CWD, 0, NONE, TARGET},
    {SYS_readlink, CWD, 0, NONE, ITSELF},
    {SYS_mkdir, CWD, 0, NONE, ITSELF},
    {SYS_rmdir, CWD, 0, NONE, ITSELF},
    {SYS_unlink, CWD, 0, NONE, ITSELF},
    {SYS_rename, CWD, 0, NONE, CONTENT},
    {SYS_rename, CWD, 1, NONE, ITSELF},
    {SYS_link, CWD, 0, NONE, CONTENT},
    {SYS_link, CWD, 1, NONE, ITSELF},
    {SYS_symlink, CWD, 1, NONE, ITSELF},
    {SYS_mknod, CWD, 0, NONE, ITSELF},
    {SYS_chmod, CWD, 0, NONE, TARGET},
    {SYS_chown, CWD, 0, NONE, TARGET},
    {SYS_lchown, CWD, 0, NONE, ITSELF},
    {SYS_utimes, CWD, 0, NONE, TARGET},
    {SYS_futimesat, 0, 1, NONE, TARGET},
    {SYS_getdents, 0, NONE, NONE, LISTING},
#endif
};
const size_t n_calls = sizeof calls / sizeof *calls;

/* What of a file has to be there for that call with these arguments. */
enum need need_of(const struct call *call, const uint64_t *arguments)
{
    int flags = call->flags == NONE ? 0 : (int)arguments[call->flags];

    if (call->need != OPENED)
        return call->need == TARGET && flags & AT_SYMLINK_NOFOLLOW ? ITSELF : call->need;
    if (flags & (O_PATH | O_TRUNC) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return TARGET;
    return CONTENT;
}

/* The descriptor of the folder that a name is relative to. */
int folder_of(const struct call *call, const uint64_t *arguments)
{
    return call->folder == CWD ? AT_FDCWD : (int)arguments[call->folder];
}
