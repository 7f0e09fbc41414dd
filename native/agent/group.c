/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where programs run: as a service does, two control groups below the root, with the controllers that an init system turns on. Kernel
 * memory of the root group is not charged, and no program of a real system runs there.
 *
 * The kernel's command line says which: kdelta.as=service (memory and pids), container (cpu, too) or none (the root group).
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define OUTER ROOT "/kdelta.slice"
#define INNER OUTER "/kdelta.service"
#define LOAD_PROGRAM "/workloads/syscalls"

static char command_line[4096];
static bool joins;

static bool asked(const char *word)
{
    size_t size = strlen(word);

    for (const char *p = command_line; (p = strstr(p, word)); p += size)
        if ((p == command_line || p[-1] == ' ') && strchr(" \n", p[size]))
            return true;
    return false;
}

/* Turned on in the root group and in the outer one, so that the inner one has it; false where the kernel lacks it. */
static bool turn_on(const char *controller)
{
    char word[32];

    snprintf(word, sizeof word, "+%s", controller);
    return write_file(ROOT "/cgroup.subtree_control", word) && write_file(OUTER "/cgroup.subtree_control", word);
}

void group_make(void)
{
    static const char *const controllers[] = {"memory", "pids", "cpu"};
    size_t wanted;

    read_file("/proc/cmdline", command_line, sizeof command_line);
    wanted = asked("kdelta.as=container") ? 3 : asked("kdelta.as=service") ? 2 : 0;
    message_start("group");
    if (wanted && !mount("cgroup2", ROOT, "cgroup2", 0, NULL) && !mkdir(OUTER, 0755)) {
        for (size_t i = 0; i < wanted; i++)
            if (turn_on(controllers[i]))
                message_text("%s ", controllers[i]);
        joins = !mkdir(INNER, 0755);
    }
    message_text("\n");
    message_end();
}

/* The calling process, before it becomes the program. */
void group_join(void)
{
    setsid();
    if (joins && !write_file(INNER "/cgroup.procs", "0"))
        _exit(127);
}

/* The standard load, kdelta.load: all operations once, so that what is measured later finds the caches and lists of a kernel that has
 * worked. Its marks do nothing before the snapshot. */
void load_run(void)
{
    static char *const argv[] = {LOAD_PROGRAM, NULL}, *const env[] = {NULL};
    pid_t child;
    int status;

    if (!asked("kdelta.load"))
        return;
    child = fork();
    if (!child) {
        group_join();
        execve(argv[0], argv, env);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        message("note", "the standard load did not run to its end");
}
