/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For static programs: those that they start with an environment of their own call directly, too. */
#ifdef KDELTA_CALL_STATIC
#include <string.h>
#include <unistd.h>

#include "call.h"

extern char **environ;
extern int __real_execve(const char *path, char *const argv[], char *const envp[]);
int __wrap_execve(const char *path, char *const argv[], char *const envp[]);

static bool has(char *const envp[], const char *variable)
{
    size_t name_bytes = strcspn(variable, "=") + 1;

    for (; *envp; envp++)
        if (!strncmp(*envp, variable, name_bytes))
            return true;
    return false;
}

static bool is_passed_on(const char *variable, char *const envp[])
{
    bool is_ours = !strncmp(variable, "KDELTA_CALL", 11) || !strncmp(variable, "LD_PRELOAD=", 11);

    return is_ours && !has(envp, variable);
}

/* By --wrap=execve: the program's own calls of execve() come here. */
int __wrap_execve(const char *path, char *const argv[], char *const envp[])
{
    size_t count = 0, more = 0;

    if (envp == environ || !kdelta_call_report.mode)
        return __real_execve(path, argv, envp);
    for (char *const *variable = envp; *variable; variable++)
        count++;
    for (char **variable = environ; *variable; variable++)
        more += is_passed_on(*variable, envp);

    char *all[count + more + 1];

    memcpy(all, envp, count * sizeof(*all));
    for (char **variable = environ; *variable; variable++)
        if (is_passed_on(*variable, envp))
            all[count++] = *variable;
    all[count] = NULL;
    return __real_execve(path, argv, all);
}
#endif
