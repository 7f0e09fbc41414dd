/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A database's server: a partner of the measured task from its first instruction on, with all that it makes. */
#include "wisconsin.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kdelta.h"

#define LOG WORK_FOLDER "/log"
#define MAX_WORDS 64
#define START_SECONDS 600 /* of the guest's time, which goes on with instructions */
#define ASK_NS 100000000

extern char **environ;

static const char *more_words[MAX_WORDS / 2];
static size_t n_more;
static pid_t server;
static const char *server_name;

void server_add_word(const char *word)
{
    if (n_more == MAX_WORDS / 2)
        fail("more than %d words for the server", MAX_WORDS / 2);
    more_words[n_more++] = word;
}

static _Noreturn void become(char *const argv[], uid_t user)
{
    int log = open(LOG, O_WRONLY | O_CREAT | O_APPEND, 0666);

    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (user && (setgroups(0, NULL) || setgid(user) || setuid(user)))
        dprintf(STDERR_FILENO, "becoming user %u: %s\n", user, strerror(errno));
    else
        execv(argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static const char *end_of(int status)
{
    static char text[1500], last[1300];

    last_lines(LOG, last, sizeof last);
    if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "ended by signal %d: %s", WTERMSIG(status), last);
    else
        snprintf(text, sizeof text, "ended with code %d: %s", WEXITSTATUS(status), last);
    return text;
}

void run_to_end(char *const argv[], uid_t user, const char *what)
{
    int status = 0;
    pid_t child = (pid_t)must(fork(), "a process");

    if (!child)
        become(argv, user);
    must(waitpid(child, &status, 0), what);
    if (status)
        fail("%s: %s %s", what, argv[0], end_of(status));
    must(truncate(LOG, 0), LOG); /* what the server says is not to be looked for among it */
}

const char *server_trouble(void)
{
    static char text[1600];
    int status;

    if (!server || waitpid(server, &status, WNOHANG) != server)
        return "";
    server = 0;
    snprintf(text, sizeof text, "; %s %s", server_name, end_of(status));
    return text;
}

void server_start(char *const argv[], uid_t user, bool (*ready)(void))
{
    const struct timespec pause = {.tv_nsec = ASK_NS};
    char *words[MAX_WORDS + 1];
    const char *trouble;
    size_t n = 0;

    for (; argv[n]; n++)
        words[n] = argv[n];
    for (size_t i = 0; i < n_more; i++)
        words[n++] = (char *)more_words[i];
    words[n] = NULL;
    server_name = argv[0];
    server = (pid_t)must(fork(), "a process");
    if (!server) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        kdelta_join();
        become(words, user);
    }
    for (long waited = 0; !ready(); waited++) {
        char last[1300];

        trouble = server_trouble();
        if (*trouble)
            fail("the database does not start%s", trouble);
        if (waited > START_SECONDS * (1000000000 / ASK_NS)) {
            last_lines(LOG, last, sizeof last);
            fail("the database does not start: it does not answer after %d s: %s", START_SECONDS, last);
        }
        nanosleep(&pause, NULL);
    }
}

/* The one file that a pattern matches. */
const char *found_file(const char *pattern)
{
    static glob_t matches;

    if (glob(pattern, GLOB_APPEND * (matches.gl_pathc > 0), NULL, &matches))
        fail("there is no %s", pattern);
    return matches.gl_pathv[matches.gl_pathc - 1];
}
