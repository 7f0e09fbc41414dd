/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bundle: a workload that times itself, as one static program for any Linux of its architecture.
 *
 *     bundle run [OPERATION...] >FILE    times the operations under the kernel that runs
 *     bundle list                        lists them
 *
 * FILE has a line of JSON for the machine and the kernel, one for each region, and one with a hash over all bytes before it. As the
 * init of a guest the bundle runs the operations that are named behind "run" on its command line, prints the lines on the console, and
 * reboots.
 */
#define _GNU_SOURCE
#include "facts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kdelta_timed.h"

#define RESULTS_FD 9
#define ARGUMENTS_MOST 128
#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

/* The workload's main, which is compiled under that name. */
#undef main
int workload_main(int argc, char **argv);

static uint64_t hash = FNV_BASIS;
static unsigned long regions;

static _Noreturn void fail(const char *what)
{
    dprintf(STDERR_FILENO, "bundle: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void put(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * FNV_PRIME;
        regions += bytes[i] == '\n';
    }
    for (size_t sent = 0; sent < size;) {
        ssize_t more = write(STDOUT_FILENO, bytes + sent, size - sent);

        if (more < 0 && errno != EINTR)
            fail("writing the results");
        sent += more > 0 ? (size_t)more : 0;
    }
}

/* The last CPU that it may run on: all operations share one, as in kdelta's guests. */
static int keep_to_one_cpu(void)
{
    cpu_set_t set;
    int last = -1;

    if (sched_getaffinity(0, sizeof set, &set))
        return -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            last = cpu;
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    return sched_setaffinity(0, sizeof set, &set) ? -1 : last;
}

/* Where the workload may have files, and programs that it starts: in memory, if there is such a place. */
static const char *folder(void)
{
    static const char *const places[] = {"/dev/shm", "/tmp", "/run", "/var/tmp", ".", NULL};
    const char *given = getenv("TMPDIR");

    if (given)
        return given;
    for (const char *const *place = places; *place; place++) {
        struct statvfs system;
        char path[64];

        snprintf(path, sizeof path, "%s/.kdelta-XXXXXX", *place);
        if (!statvfs(*place, &system) && !(system.f_flag & ST_NOEXEC) && mkdtemp(path))
            return rmdir(path), *place;
    }
    errno = EACCES;
    fail("no folder for files and programs: set TMPDIR");
}

static pid_t start(int argc, char **argv, const char *place, int results)
{
    char *words[ARGUMENTS_MOST + 2] = {"bundle"}, number[16];
    pid_t child = fork();

    if (child)
        return child;
    snprintf(number, sizeof number, "%d", RESULTS_FD);
    if (dup2(results, RESULTS_FD) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || setenv("KDELTA_TIMED_FD", number, 1) ||
        setenv("TMPDIR", place, 1))
        fail("starting the workload");
    for (int i = 0; i < argc; i++)
        words[1 + i] = argv[i];
    exit(workload_main(1 + argc, words));
}

static int run(int argc, char **argv)
{
    static char bytes[1 << 16];
    const char *place = folder();
    struct rusage used;
    int ends[2], status, cpu = keep_to_one_cpu();
    ssize_t size;
    pid_t child;

    if (argc > ARGUMENTS_MOST)
        errno = E2BIG, fail("operations");
    put_facts(put, cpu, place);
    if (pipe2(ends, O_CLOEXEC))
        fail("pipe");
    child = start(argc, argv, place, ends[1]);
    if (child < 0)
        fail("fork");
    close(ends[1]);
    while ((size = read(ends[0], bytes, sizeof bytes)) > 0 || (size < 0 && errno == EINTR))
        if (size > 0)
            put(bytes, (size_t)size);
    if (waitpid(child, &status, 0) != child || getrusage(RUSAGE_CHILDREN, &used))
        fail("waiting for the workload");
    size = snprintf(bytes, sizeof bytes,
                    "{\"regions\":%lu,\"status\":%d,\"involuntary_switches\":%ld,\"boot_id\":\"%s\",\"hash\":\"%016llx\"}\n",
                    regions - 1, status, used.ru_nivcsw, boot_id(), (unsigned long long)hash);
    put(bytes, (size_t)size);
    return status ? 1 : 0;
}

/* A kernel that has no random numbers yet makes new ones for each system call (6.1 on arm64, for the offset of its stack: 9,000
 * instructions), which no machine does for long. What they are does not matter here. */
static void seed_kernel(void)
{
    struct {
        struct rand_pool_info head;
        uint64_t words[8];
    } seed = {.head = {.entropy_count = 8 * sizeof seed.words, .buf_size = sizeof seed.words}};
    int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; i < sizeof seed.words / sizeof *seed.words; i++)
        seed.words[i] = (kdelta_ticks() + i) * FNV_PRIME;
    if (fd >= 0)
        ioctl(fd, RNDADDENTROPY, &seed), close(fd);
}

/* Brings up the loopback network; a kernel without one says so in the operations that need it. */
static void network_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return;
    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
}

/* Of a guest that has nothing else. What the kernel does not know of its command line comes before the word "run", and the operations
 * behind it are one word with commas, since it passes on 32 words at most. */
static _Noreturn void init(int argc, char **argv)
{
    static const struct {
        const char *type, *at;
    } mounts[] = {{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}};
    char *words[ARGUMENTS_MOST];
    int console, n = 0;
    pid_t child;

    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        mkdir(mounts[i].at, 0755);
        mount(mounts[i].type, mounts[i].at, mounts[i].type, 0, NULL);
    }
    console = open("/dev/console", O_RDWR);
    if (console >= 0)
        dup2(console, STDIN_FILENO), dup2(console, STDOUT_FILENO), dup2(console, STDERR_FILENO);
    setenv("TMPDIR", "/tmp", 1);
    seed_kernel();
    network_up();
    while (argc && strcmp(*argv, "run"))
        argc--, argv++;
    for (char *word = strtok(argc > 1 ? argv[1] : "", ","); word && n < ARGUMENTS_MOST; word = strtok(NULL, ","))
        words[n++] = word;
    child = fork();
    if (!child)
        exit(run(n, words));
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    sync();
    reboot(RB_AUTOBOOT); /* which ends a QEMU that does not start again */
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    if (getpid() == 1)
        init(argc, argv);
    if (argc > 1 && !strcmp(argv[1], "run"))
        return run(argc - 2, argv + 2);
    if (argc == 2 && !strcmp(argv[1], "list")) {
        char *words[] = {argv[0], "--list", NULL};

        return workload_main(2, words);
    }
    dprintf(STDERR_FILENO, "usage: %s run [OPERATION...] >FILE\n       %s list\n", argv[0], argv[0]);
    return 2;
}
