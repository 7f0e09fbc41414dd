/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns of QEMU's threads.
 *
 * With thread=single one thread executes all of the guest's CPUs, one after the other. Next to it the main loop handles events, and the
 * thread of RCU frees memory. Both timers and CPUs depend on when that happens: who finds a timer due moves the clock and kicks CPUs, a
 * kicked CPU's turn among the CPUs ends early, and so all later turns come at other instructions. With one CPU only the way into a halt
 * matters (halt.c).
 *
 * So here the CPUs' thread never goes on together with one of the others. It has the turn until all CPUs are idle, or until it has
 * notified the main loop and next wants QEMU's global lock. Then the main loop goes on until it has nothing to do. RCU's thread, which
 * kicks a CPU that keeps it waiting, goes on while all CPUs are idle.
 *
 * How long a CPU's turn among the CPUs is, QEMU decides by when the next timer of the guest's clock expires. A region's turns are short
 * while a timer of the host's side is on, which expires again and again; outside of regions it would make an idle guest slow, whose clock
 * goes on by one timer at a time. It is switched by QEMU's monitor, so in the main loop, while the CPU that marks the region waits.
 *
 * These threads are stopped in functions of the C library and of GLib that are replaced here: this library has to be loaded before
 * QEMU's other ones.
 */
#define _GNU_SOURCE
#include "turns.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor.h"

#define REPLACES __attribute__((visibility("default")))
#define MOST_FILES 1024
#define RCU_SLEEP_US 10000 /* what RCU's thread sleeps between looks, as no other thread does (call_rcu_thread in QEMU's sources) */

/* What expires is the timer of a filter (filter-buffer) called "turn". */
#define SWITCH(to) \
    "{\"execute\": \"qom-set\", \"arguments\": {\"path\": \"/objects/turn\", \"property\": \"status\", \"value\": \"" to "\"}}\n"

/* pthread_cond_wait has an older version, too. */
#if defined __x86_64__
#define WAIT_VERSION "GLIBC_2.3.2"
#else
#define WAIT_VERSION "GLIBC_2.17"
#endif

enum thread { NONE, MAIN_LOOP, CPUS, RCU };

static __thread enum thread self;
static __thread pthread_mutex_t *waited_with;

static struct {
    bool wanted, begun;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum thread holder;      /* CPUS, MAIN_LOOP or NONE */
    bool cpus_wait;          /* until the main loop has had its turn */
    bool cpus_idle;          /* until there is something to execute */
    bool rcu_works;
    uint64_t rounds;         /* turns that the main loop has ended */
    bool notified;           /* by the CPUs' thread, which alone uses this */
    pthread_mutex_t *global; /* QEMU's global lock */
    bool main_needs_cpus;    /* it waits for what the CPUs' thread does */
    const char *monitor;     /* the path of one, by which turns are made short; NULL where they never are */
    bool is_event[MOST_FILES], wakes_main[MOST_FILES]; /* files for events; those that the main loop waits for */
} turns = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static struct {
    int (*lock)(pthread_mutex_t *mutex);
    int (*wait)(pthread_cond_t *condition, pthread_mutex_t *mutex);
    int (*poll)(struct pollfd *files, nfds_t n, const struct timespec *timeout, const sigset_t *signals);
    long (*call)(long number, ...);
    void (*sleep)(unsigned long us);
} original;

static void enter(void)
{
    original.lock(&turns.lock);
}

static void leave(void)
{
    pthread_cond_broadcast(&turns.changed);
    pthread_mutex_unlock(&turns.lock);
}

static void await(void)
{
    original.wait(&turns.changed, &turns.lock);
}

/* With the lock of turns. */
static void take_back(void)
{
    turns.cpus_wait = turns.cpus_idle = false;
    while (turns.holder != NONE || turns.rcu_works)
        await();
    turns.holder = CPUS;
}

/* To the main loop, which has been notified, and so wakes up. */
static void give_round(void)
{
    turns.notified = false;
    enter();
    const uint64_t before = turns.rounds;

    if (turns.main_needs_cpus || turns.holder != CPUS) {
        leave();
        return;
    }
    turns.holder = NONE;
    turns.cpus_wait = true;
    pthread_cond_broadcast(&turns.changed);
    while (turns.rounds == before)
        await();
    take_back();
    leave();
}

REPLACES int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!original.lock)
        original.lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    if (self == CPUS && mutex == turns.global && turns.notified)
        give_round();
    return original.lock(mutex);
}

static void find_wait(void)
{
    if (!original.wait)
        original.wait = dlvsym(RTLD_NEXT, "pthread_cond_wait", WAIT_VERSION);
}

static void end_round(bool needs_cpus)
{
    enter();
    turns.main_needs_cpus = needs_cpus;
    if (turns.holder == MAIN_LOOP) {
        turns.holder = NONE;
        turns.rounds++;
    }
    leave();
}

static bool begin_round(void)
{
    enter();
    turns.main_needs_cpus = false;
    while (turns.begun && (turns.holder != NONE || !turns.cpus_wait))
        await();
    if (turns.begun)
        turns.holder = MAIN_LOOP;
    leave();
    return turns.begun;
}

/* Until cpus_go_on; `idle`: since there is nothing to execute. */
static void cpus_stop(bool idle)
{
    enter();
    turns.notified = false;
    if (turns.holder == CPUS)
        turns.holder = NONE;
    turns.cpus_wait = true;
    turns.cpus_idle = idle;
    leave();
}

static void cpus_go_on(void)
{
    enter();
    take_back();
    leave();
}

/* The main loop waits for the CPUs' thread so, too: until it has done something, or has stopped. */
REPLACES int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    find_wait();
    waited_with = mutex;
    if (mutex != turns.global || (self != CPUS && self != MAIN_LOOP))
        return original.wait(condition, mutex);
    self == CPUS ? cpus_stop(true) : end_round(true);
    int result = original.wait(condition, mutex);

    pthread_mutex_unlock(mutex); /* the other one may need it to end its turn */
    self == CPUS ? cpus_go_on() : (void)begin_round();
    original.lock(mutex);
    return result;
}

/* What has happened is asked again at the begin of a turn: it shall not matter how long the main loop has waited for that. */
REPLACES int ppoll(struct pollfd *files, nfds_t n, const struct timespec *timeout, const sigset_t *signals)
{
    static const struct timespec now;
    int ready;

    if (!original.poll)
        original.poll = dlsym(RTLD_NEXT, "ppoll");
    if (self != MAIN_LOOP)
        return original.poll(files, n, timeout, signals);
    if (turns.holder == MAIN_LOOP) { /* which no other thread changes */
        ready = original.poll(files, n, &now, signals);
        if (ready || (timeout && !timeout->tv_sec && !timeout->tv_nsec))
            return ready;
    }
    for (nfds_t i = 0; i < n; i++)
        if (files[i].fd >= 0 && files[i].fd < MOST_FILES)
            turns.wakes_main[files[i].fd] = true;
    end_round(false);
    ready = original.poll(files, n, timeout, signals);
    return begin_round() ? original.poll(files, n, &now, signals) : ready;
}

REPLACES int eventfd(unsigned int value, int flags)
{
    int file = (int)syscall(SYS_eventfd2, value, flags);

    if (file >= 0 && file < MOST_FILES)
        turns.is_event[file] = true;
    return file;
}

REPLACES ssize_t write(int file, const void *data, size_t size)
{
    if (self == CPUS && file >= 0 && file < MOST_FILES && turns.is_event[file] && turns.wakes_main[file])
        turns.notified = true;
    return syscall(SYS_write, file, data, size);
}

static void rcu_stops(void)
{
    enter();
    turns.rcu_works = false;
    leave();
}

static void rcu_goes_on(void)
{
    enter();
    while (!turns.cpus_idle)
        await();
    turns.rcu_works = true;
    leave();
}

REPLACES void g_usleep(unsigned long us)
{
    if (!original.sleep)
        original.sleep = dlsym(RTLD_NEXT, "g_usleep");
    bool is_rcu = turns.begun && us == RCU_SLEEP_US && self != MAIN_LOOP && self != CPUS;

    if (is_rcu) {
        self = RCU;
        rcu_stops();
    }
    original.sleep(us);
    if (is_rcu)
        rcu_goes_on();
}

/* RCU's thread waits for work, or for another thread that may need the CPUs' one to go on. */
REPLACES long syscall(long number, ...)
{
    va_list arguments;
    long a[6];

    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (!original.call)
        original.call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    bool waits = self == RCU && number == SYS_futex && ((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;

    if (waits)
        rcu_stops();
    long result = original.call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    int error = errno;

    if (waits)
        rcu_goes_on();
    errno = error;
    return result;
}

static _Noreturn void refuse(const char *why)
{
    fprintf(stderr, "kdelta plugin: %s: a run with several CPUs would not repeat\n", why);
    _exit(1);
}

void turns_want(void)
{
    find_wait();
    if (!original.lock || !original.wait)
        refuse("QEMU does not call this library's functions");
    self = MAIN_LOOP;
    turns.wanted = true;
}

/* It has waited for the guest's start, with the global lock, and waits again. */
void turns_begin(void)
{
    if (turns.begun || !turns.wanted || self == MAIN_LOOP || !waited_with)
        return;
    self = CPUS;
    enter();
    turns.global = waited_with;
    turns.holder = MAIN_LOOP;
    turns.begun = true;
    leave();
}

void turns_must_have_begun(void)
{
    if (turns.wanted && !turns.begun)
        refuse("QEMU does not report a CPU in the thread that executes it, as QEMU 10 does");
}

void turns_may_be_short(const char *monitor)
{
    turns.monitor = monitor;
}

/* The CPU has executed some of its turn; RCU's thread, which might kick it, waits as before. */
void turns_shorten(bool on)
{
    if (!turns.monitor || !turns.begun)
        return;
    cpus_stop(false);
    monitor_execute(turns.monitor, on ? SWITCH("on") : SWITCH("off"));
    cpus_go_on();
}
