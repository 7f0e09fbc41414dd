/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For static programs: those that they start with an environment of their own call directly, too. */
#ifdef KDELTA_CALL_STATIC
#include <string.h>
#include <unistd.h>

#include "call.h"

extern char **environ;
extern int __real_execve(const char *path, char *const argv[], char *const envp[]);
int __wrap_execve(const char *path, char *const argv[], char *const envp[]);

static bool is_passed_on(const char *variable)
{
    return !strncmp(variable, "KDELTA_CALL", 11) || !strncmp(variable, "LD_PRELOAD=", 11);
}

/* By --wrap=execve: the program's own calls of execve() come here. */
int __wrap_execve(const char *path, char *const argv[], char *const envp[])
{
    size_t count = 0, passed = 0;

    for (char *const *variable = envp; *variable; variable++)
        count++;
    for (char **variable = environ; *variable; variable++)
        passed += is_passed_on(*variable);
    if (envp == environ || !kdelta_call_report.mode)
        return __real_execve(path, argv, envp);

    char *all[count + passed + 1];

    memcpy(all, envp, count * sizeof(*all));
    for (char **variable = environ; *variable; variable++)
        if (is_passed_on(*variable))
            all[count++] = *variable;
    all[count] = NULL;
    return __real_execve(path, argv, all);
}
#endif
