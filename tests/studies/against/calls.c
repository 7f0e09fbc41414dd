/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes system calls in the ways in which they are hard to count: many by one instruction, in children that become another program, from
 * which there is no return, by a signal's handler, and one that no kernel has. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef WRITES
#define WRITES 100
#endif
#define NO_CALL 9999

static volatile sig_atomic_t handled;

static void handle(int signal)
{
    (void)signal;
    handled++;
}

/* All by the same instruction of the C library. */
static void mix(void)
{
    for (int i = 0; i < 30; i++) {
        syscall(i % 3 ? SYS_getppid : SYS_getuid);
        syscall(SYS_fcntl, STDOUT_FILENO, F_GETFD);
    }
    syscall(NO_CALL);
}

static int child(void)
{
    for (int i = 0; i < 5; i++) {
        char *page = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (page == MAP_FAILED)
            return 1;
        memset(page, 1, 1 << 20);
        munmap(page, 1 << 20);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct timespec moment = { .tv_nsec = 1000 };
    int null = open("/dev/null", O_WRONLY), status;

    if (argc > 1 && !strcmp(argv[1], "child"))
        return child();
    if (argc > 1 && !strcmp(argv[1], "fail"))
        return 3;
    for (int i = 0; i < WRITES; i++)
        if (write(null, "x", 1) != 1)
            return 1;
    mix();
    signal(SIGUSR1, handle);
    for (int i = 0; i < 4; i++)
        kill(getpid(), SIGUSR1);
    nanosleep(&moment, NULL);
    for (int i = 0; i < 2; i++) {
        pid_t made = fork();

        if (!made) {
            if (i)
                _exit(0);
            execl(argv[0], argv[0], "child", NULL);
            _exit(1);
        }
        if (waitpid(made, &status, 0) != made || status)
            return 1;
    }
    printf("%d\n", (int)handled);
    if (argc > 1)
        printf("%s\n", argv[1]);
    return 0;
}
