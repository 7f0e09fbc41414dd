/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An init that measures four round trips by the time-stamp counter, for a guest without kdelta's plugin and agent.
 *
 * It shares no code with kdelta. On a machine whose counter goes on by one with each instruction it prints for each round trip
 *
 *     trip NAME HELD WARM FIRST SECOND THIRD FOURTH MEDIAN
 *
 * on the console: the files that it holds open, the iterations of the warm-up, the ticks of 1,000 iterations four times, and the median
 * ticks of 1,000 more, of which each is timed. A tick is an instruction of any task or interrupt, an element of a string operation, or a
 * nanosecond without work. The last line is "trips done".
 *
 * With a file /sweep it measures each round trip several times, and holds two files more each time. An open file is some 240 bytes that
 * are charged to the group.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/random.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define QUIET_S 30
#define REST_S 2
#define WARM_TICKS 60000000ull
#define WARM_LEAST 1000
#define QUARTERS 4
#define QUARTER 1000

#define SWEEP_FILE "/sweep"
#define SWEEP_STEP 2
#define SWEEP_MOST 18

#define GROUPS "/sys/fs/cgroup"
#define SLICE GROUPS "/trips.slice"
#define SERVICE SLICE "/trips.service"

static _Noreturn void give_up(const char *what)
{
    printf("trips failed: %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(1);
}

static long checked(long value, const char *what)
{
    if (value < 0)
        give_up(what);
    return value;
}

static uint64_t ticks(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

/* What an init does. */

static void put(const char *path, const char *text)
{
    int fd = (int)checked(open(path, O_WRONLY | O_CLOEXEC), path);

    checked(write(fd, text, strlen(text)), path);
    close(fd);
}

static void mount_at(const char *type, const char *path)
{
    mkdir(path, 0755);
    if (mount(type, path, type, 0, NULL) && errno != EBUSY)
        give_up(path);
}

/* A service's: two groups below the root, of which the inner one has the controllers. */
static void make_groups(void)
{
    mount_at("cgroup2", GROUPS);
    checked(mkdir(SLICE, 0755), SLICE);
    put(GROUPS "/cgroup.subtree_control", "+memory +pids");
    put(SLICE "/cgroup.subtree_control", "+memory +pids");
    checked(mkdir(SERVICE, 0755), SERVICE);
}

/* A kernel whose random pool is empty takes a longer way in each system call that draws a random stack offset. */
static void fill_pool(void)
{
    struct {
        int bits, bytes;
        uint32_t words[16];
    } seed = {.bits = 512, .bytes = 64};
    int fd = (int)checked(open("/dev/urandom", O_RDWR | O_CLOEXEC), "/dev/urandom");

    for (unsigned i = 0; i < 16; i++)
        seed.words[i] = 0x9e3779b9u * (i + 1);
    checked(ioctl(fd, RNDADDENTROPY, &seed), "RNDADDENTROPY");
    checked(ioctl(fd, RNDRESEEDCRNG), "RNDRESEEDCRNG");
    close(fd);
}

static void bring_up_loopback(void)
{
    struct ifreq lo = {.ifr_name = "lo"};
    int fd = (int)checked(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");

    checked(ioctl(fd, SIOCGIFFLAGS, &lo), "lo");
    lo.ifr_flags |= IFF_UP;
    checked(ioctl(fd, SIOCSIFFLAGS, &lo), "lo");
    close(fd);
}

static void rest(unsigned seconds)
{
    struct timespec time = {.tv_sec = seconds};

    while (nanosleep(&time, &time) && errno == EINTR)
        ;
}

/* The round trips. */

static int ours[2], theirs[2]; /* where to read, and where to write */
static unsigned *flag;         /* whose turn it is, in shared memory: 0 ours, 1 theirs */
static char byte;

static void to(int fd)
{
    if (syscall(SYS_write, fd, &byte, 1L) != 1)
        give_up("write");
}

static void from(int fd)
{
    if (syscall(SYS_read, fd, &byte, 1L) != 1)
        give_up("read");
}

static void there_and_back(void)
{
    to(ours[1]);
    from(ours[0]);
}

static void answer_bytes(void)
{
    for (;;) {
        from(theirs[0]);
        to(theirs[1]);
    }
}

static void hand_over(unsigned next)
{
    __atomic_store_n(flag, next, __ATOMIC_RELAXED);
    checked(syscall(SYS_futex, flag, FUTEX_WAKE, 1, NULL, NULL, 0), "FUTEX_WAKE");
}

static void wait_for(unsigned mine)
{
    while (__atomic_load_n(flag, __ATOMIC_RELAXED) != mine)
        syscall(SYS_futex, flag, FUTEX_WAIT, !mine, NULL, NULL, 0);
}

static void ping(void)
{
    hand_over(1);
    wait_for(0);
}

static void answer_futex(void)
{
    for (;;) {
        wait_for(1);
        hand_over(0);
    }
}

static void open_pipes(void)
{
    int a[2], b[2];

    checked(pipe2(a, O_CLOEXEC), "pipe2");
    checked(pipe2(b, O_CLOEXEC), "pipe2");
    theirs[0] = a[0], ours[1] = a[1];
    ours[0] = b[0], theirs[1] = b[1];
}

static void open_unix(void)
{
    int ends[2];

    checked(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
    ours[0] = ours[1] = ends[0];
    theirs[0] = theirs[1] = ends[1];
}

static void open_tcp(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET};
    socklen_t size = sizeof here;
    int door, a, b, yes = 1;

    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    door = (int)checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    checked(bind(door, (void *)&here, size), "bind");
    checked(listen(door, 1), "listen");
    checked(getsockname(door, (void *)&here, &size), "getsockname");
    a = (int)checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    checked(connect(a, (void *)&here, size), "connect");
    b = (int)checked(accept4(door, NULL, NULL, SOCK_CLOEXEC), "accept4");
    close(door);
    checked(setsockopt(a, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), "TCP_NODELAY");
    checked(setsockopt(b, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), "TCP_NODELAY");
    ours[0] = ours[1] = a;
    theirs[0] = theirs[1] = b;
}

static void share_flag(void)
{
    flag = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (flag == MAP_FAILED)
        give_up("mmap");
    *flag = 0;
}

static const struct trip {
    const char *name;
    void (*open)(void), (*once)(void), (*answer)(void);
} trips[] = {
    {"pipe-round-trip", open_pipes, there_and_back, answer_bytes},
    {"futex-ping-pong", share_flag, ping, answer_futex},
    {"tcp-round-trip", open_tcp, there_and_back, answer_bytes},
    {"unix-round-trip", open_unix, there_and_back, answer_bytes},
};

static int by_size(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static uint64_t median_of_more(const struct trip *trip)
{
    static uint64_t each[QUARTER];
    uint64_t before;

    for (unsigned n = 0; n < QUARTER; n++)
        each[n] = 1; /* its pages are there when they are needed */
    before = ticks();
    for (unsigned n = 0; n < QUARTER; n++) {
        uint64_t now;

        trip->once();
        now = ticks();
        each[n] = now - before;
        before = now;
    }
    qsort(each, QUARTER, sizeof *each, by_size);
    return each[QUARTER / 2];
}

/* In a process of its own. It prints when all is measured: the console takes time of the guest. */
static void measure(const struct trip *trip, int held)
{
    uint64_t at[QUARTERS + 1], until, median;
    unsigned long warm = 0;
    pid_t other;

    rest(REST_S);
    trip->open();
    other = (pid_t)checked(fork(), "fork");
    if (!other) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        trip->answer();
    }
    for (int i = 0; i < held; i++)
        checked(open("/dev/null", O_RDONLY), "/dev/null");
    for (until = ticks() + WARM_TICKS; warm < WARM_LEAST || ticks() < until; warm++)
        trip->once();
    at[0] = ticks();
    for (unsigned quarter = 1; quarter <= QUARTERS; quarter++) {
        for (unsigned n = 0; n < QUARTER; n++)
            trip->once();
        at[quarter] = ticks();
    }
    median = median_of_more(trip);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    printf("trip %s %d %lu", trip->name, held, warm);
    for (unsigned quarter = 0; quarter < QUARTERS; quarter++)
        printf(" %llu", (unsigned long long)(at[quarter + 1] - at[quarter]));
    printf(" %llu\n", (unsigned long long)median);
    fflush(stdout);
}

static void end_child(pid_t child)
{
    int status;

    if (waitpid(child, &status, 0) != child || status) {
        errno = ECHILD;
        give_up("a child ended badly");
    }
}

/* As a service runs: a session of its own, in the inner group. */
static void serve(void)
{
    int most = access(SWEEP_FILE, F_OK) ? 0 : SWEEP_MOST;

    checked(setsid(), "setsid");
    put(SERVICE "/cgroup.procs", "0");
    for (const struct trip *trip = trips; trip < trips + sizeof trips / sizeof *trips; trip++)
        for (int held = 0; held <= most; held += SWEEP_STEP) {
            pid_t child = (pid_t)checked(fork(), "fork");

            if (!child) {
                measure(trip, held);
                _exit(0);
            }
            end_child(child);
        }
}

int main(void)
{
    pid_t child;
    int console;

    if (getpid() != 1) {
        fputs("round_trips_init: this is the init of a guest\n", stderr);
        return 1;
    }
    mount_at("devtmpfs", "/dev");
    console = open("/dev/console", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(console, fd);
    if (console > 2)
        close(console);
    mount_at("proc", "/proc");
    mount_at("sysfs", "/sys");
    fill_pool();
    bring_up_loopback();
    make_groups();
    rest(QUIET_S);
    child = (pid_t)checked(fork(), "fork");
    if (!child) {
        serve();
        _exit(0);
    }
    end_child(child);
    puts("trips done");
    fflush(stdout);
    tcdrain(1);
    reboot(RB_AUTOBOOT); /* QEMU ends with it */
    return 1;
}
