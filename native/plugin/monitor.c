/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "monitor.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static FILE *answers;

static _Noreturn void refuse(const char *what, const char *said)
{
    fprintf(stderr, "kdelta plugin: QEMU's monitor %s: %s", what, said);
    _exit(1);
}

/* Besides answers, there are a greeting and events. */
static void await_answer(const char *command)
{
    static const char done[] = "{\"return\"", failed[] = "{\"error\"";
    char line[4096];

    do {
        if (!fgets(line, sizeof line, answers))
            refuse("went away at", command);
        if (!strncmp(line, failed, sizeof failed - 1))
            refuse("refused", line);
    } while (strncmp(line, done, sizeof done - 1) != 0);
}

static void ask(const char *command)
{
    size_t length = strlen(command);

    if (send(fileno(answers), command, length, MSG_NOSIGNAL) != (ssize_t)length)
        refuse("does not take", command);
    await_answer(command);
}

static void connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (file < 0 || connect(file, (struct sockaddr *)&address, sizeof address))
        refuse("cannot be connected to at", path);
    answers = fdopen(file, "r");
    if (!answers)
        refuse("cannot be read at", path);
    ask("{\"execute\": \"qmp_capabilities\"}\n");
}

void monitor_execute(const char *path, const char *command)
{
    if (!answers)
        connect_to(path);
    ask(command);
}
