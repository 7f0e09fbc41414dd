/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals that interrupt calls: those that end with EINTR, are restarted, go on where they were, and are left. */
#include "calling.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALTSTACK_BYTES (64 << 10)
#define SLEEP_MS 200

static int tube[2];
static volatile sig_atomic_t signals;
static volatile uintptr_t handler_stack;
static sigjmp_buf back;

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    EXPECT(sigaction(number, &action, NULL) == 0);
}

static void set_timer(long first_us, long period_us)
{
    struct itimerval timer = {.it_interval = {0, period_us}, .it_value = {0, first_us}};

    EXPECT(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void count(int number)
{
    (void)number;
    signals++;
}

static void count_and_write(int number)
{
    count(number);
    EXPECT(write(tube[1], "x", 1) == 1);
}

void case_eintr(void)
{
    char byte;

    EXPECT(pipe(tube) == 0);
    handle(SIGALRM, count, 0);
    for (int i = 1; i <= 20; i++) {
        set_timer(2000, 0);
        errno = 0;
        EXPECT(read(tube[0], &byte, 1) == -1 && errno == EINTR && signals == i);
    }
}

void case_restart(void)
{
    char byte;

    EXPECT(pipe(tube) == 0);
    handle(SIGALRM, count_and_write, SA_RESTART);
    for (int i = 1; i <= 20; i++) {
        set_timer(2000, 0);
        byte = 0;
        EXPECT(read(tube[0], &byte, 1) == 1 && byte == 'x' && signals == i);
        set_timer(2000, 0);
        EXPECT(syscall(SYS_read, tube[0], &byte, 1) == 1);
        signals = i;
    }
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Stopped and continued, a sleep goes on by restart_syscall(), with the time that is left. */
static void sleep_and_be_stopped(int (*sleeps)(void))
{
    int64_t began = now_ms();
    pid_t child = fork();
    int status = 0;

    EXPECT(child >= 0);
    if (!child)
        _exit(sleeps() == 0 && now_ms() - began >= SLEEP_MS ? 9 : 1);
    for (int i = 0; i < 3; i++) {
        usleep(SLEEP_MS * 1000 / 10);
        kill(child, SIGSTOP);
        EXPECT(waitpid(child, &status, WUNTRACED) == child);
        if (!WIFSTOPPED(status))
            break; /* on a busy machine it may have ended before */
        kill(child, SIGCONT);
    }
    EXPECT(!WIFSTOPPED(status) || waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

static int by_nanosleep(void)
{
    return nanosleep(&(struct timespec){.tv_nsec = SLEEP_MS * 1000000}, NULL);
}

static int by_poll(void)
{
    return poll(NULL, 0, SLEEP_MS);
}

void case_stopped(void)
{
    sleep_and_be_stopped(by_nanosleep);
    sleep_and_be_stopped(by_poll);
}

/* Signals at any instruction of a call, in the stub's as well. */
void case_storm(void)
{
    pid_t parent = getppid();
    sigset_t set;

    handle(SIGALRM, count, SA_RESTART);
    set_timer(50, 50);
    while (signals < 2000) {
        EXPECT(getppid() == parent);
        EXPECT(syscall(SYS_getppid) == parent);
        EXPECT(sigprocmask(SIG_SETMASK, NULL, &set) == 0 && !sigismember(&set, SIGUSR1));
    }
    set_timer(0, 0);
}

/* A handler's frame leaves the red zone alone. */
void case_red_zone(void)
{
    handle(SIGALRM, count, SA_RESTART);
    set_timer(50, 50);
    while (signals < 2000)
        registers_check();
    set_timer(0, 0);
}

static void jump(int number)
{
    count(number);
    siglongjmp(back, 1);
}

void case_longjmp(void)
{
    char byte;

    EXPECT(pipe(tube) == 0);
    handle(SIGALRM, jump, 0);
    while (signals < 50) {
        if (sigsetjmp(back, 1))
            continue;
        set_timer(500, 0);
        EXPECT(read(tube[0], &byte, 1) == 2); /* it never comes back */
    }
}

static void tell_stack(int number)
{
    char here;

    count(number);
    handler_stack = (uintptr_t)&here;
    EXPECT(getppid() > 0);
    if (number == SIGSEGV)
        siglongjmp(back, 1);
}

__attribute__((noinline)) static int overflow(int depth)
{
    volatile char frame[4096];

    frame[0] = (char)depth;
    return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

void case_altstack(void)
{
    char *memory = mmap(NULL, ALTSTACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = memory, .ss_size = ALTSTACK_BYTES};

    EXPECT(sigaltstack(&stack, NULL) == 0);
    handle(SIGUSR1, tell_stack, SA_ONSTACK);
    handle(SIGSEGV, tell_stack, SA_ONSTACK);
    EXPECT(raise(SIGUSR1) == 0 && signals == 1);
    EXPECT(handler_stack >= (uintptr_t)memory && handler_stack < (uintptr_t)memory + ALTSTACK_BYTES);
    handler_stack = 0;
    if (!sigsetjmp(back, 1))
        overflow(0);
    EXPECT(signals == 2);
    EXPECT(handler_stack >= (uintptr_t)memory && handler_stack < (uintptr_t)memory + ALTSTACK_BYTES);
}
