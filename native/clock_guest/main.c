/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The init of guests that are timed: unpacks what the agent would be handed over, runs its job as the agent does, and prints on the
 * console what the program says of its times. Messages for kdelta's plugin are left out: there is none.
 */
#include "../agent/agent.h"
#include "../clock/timed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kdelta_timed.h"

#define ARCHIVE "/job.cpio"
#define JOB_FILE "/job"
#define JOB_MAX_BYTES (1 << 20)
#define NAME "KDELTA_WORKLOAD=" /* of what is timed, in the job's environment */
#define OUTPUT OUTPUT_FOLDER "/printed"
#define LAST_BYTES 512
#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define SETTLE_NS 1000000000ll /* what booting left to be done later is done then, for the most part */
#define CLOCK_MOST_NS 5000000000ll

static void say(const char *format, va_list arguments)
{
    char text[512];

    vsnprintf(text, sizeof text, format, arguments);
    dprintf(STDERR_FILENO, "kdelta: %s\n", text);
}

void console(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void message(const char *type, const char *format, ...)
{
    va_list arguments;

    (void)type;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void message_start(const char *type)
{
    (void)type;
}

void message_text(const char *format, ...)
{
    (void)format;
}

void message_end(void)
{
}

void facts_send_modules(void)
{
}

void power_off(void)
{
    sync();
    reboot(RB_AUTOBOOT); /* which ends a QEMU that does not start again */
    for (;;)
        pause();
}

void finish(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    power_off();
}

/* A kernel that has no random numbers yet makes new ones for each system call (6.1 on arm64, for the offset of its stack: 9,000
 * instructions), which no machine does for long. What they are does not matter, but each boot has its own. */
static void seed_kernel(void)
{
    struct {
        struct rand_pool_info head;
        uint64_t words[8];
    } seed = {.head = {.entropy_count = 8 * sizeof seed.words, .buf_size = sizeof seed.words}};
    int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; i < sizeof seed.words / sizeof *seed.words; i++)
        seed.words[i] = (kdelta_ticks() + i) * 0x9e3779b97f4a7c15u;
    if (fd >= 0)
        ioctl(fd, RNDADDENTROPY, &seed), close(fd);
}

static bool fill(struct stream *stream)
{
    static uint8_t bytes[64 << 10];
    ssize_t size = read(*(int *)stream->source, bytes, sizeof bytes);

    stream->data = bytes;
    stream->size = size > 0 ? (size_t)size : 0;
    return size > 0;
}

static void unknown_directive(const char *line)
{
    console("unknown: %s", line);
}

static void take_job(struct job *job)
{
    int archive = open(ARCHIVE, O_RDONLY | O_CLOEXEC), root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stream stream = {.fill = fill, .source = &archive};
    char *text = malloc(JOB_MAX_BYTES);
    const char *wrong = cpio_unpack(&stream, root);

    close(root), close(archive);
    unlink(ARCHIVE);
    if (wrong)
        finish("bad-job %s", wrong);
    if (!text || !read_file(JOB_FILE, text, JOB_MAX_BYTES))
        finish("bad-job the archive has no file named job");
    unlink(JOB_FILE);
    wrong = job_parse(text, job, unknown_directive);
    if (wrong)
        finish("bad-job %s", wrong);
}

/* x86 calibrates its clock again for a second or two, and takes a poorer one until then. */
static void settle(void)
{
    int64_t until = now_ns() + CLOCK_MOST_NS;
    char source[64];

    do
        sleep_until_ns(now_ns() + SETTLE_NS);
    while (read_file(CLOCK_SOURCE, source, sizeof source) && strstr(source, "-early") && now_ns() < until);
}

static void become(void *of)
{
    const struct job *job = of;
    int in = open("/dev/null", O_RDONLY), out = open(OUTPUT, O_WRONLY | O_CREAT | O_APPEND, 0644);

    group_join();
    if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        timed_fail(OUTPUT);
    close(in), close(out);
    if (chdir(job->cwd))
        timed_fail(job->cwd);
    for (size_t i = 0; i < job->n_env; i++)
        putenv(job->env[i]);
    execve(job->argv[0], job->argv, environ);
    timed_fail(job->argv[0]);
}

/* Of a program that failed, what it printed last. */
static void show_output(void)
{
    static char text[16 << 20];
    size_t size = read_file(OUTPUT, text, sizeof text), from = size > LAST_BYTES ? size - LAST_BYTES : 0;

    dprintf(STDOUT_FILENO, "%s\n", text + from);
}

int main(void)
{
    static struct job job;
    struct timed timed = {.folder = "/tmp", .cpu = -1, .start = become, .words = &job};
    const char *name = "program";

    if (getpid() != 1) {
        fputs("this is the init of guests that kdelta times; elsewhere it would end all processes\n", stderr);
        return 1;
    }
    mounts_make();
    network_up();
    seed_kernel();
    clearenv();
    setenv("TMPDIR", "/tmp", 1);
    group_make();
    take_job(&job);
    modules_load(&job);
    date_set(&job);
    clocks_join();
    mode_set(&job);
    for (size_t i = 0; i < job.n_env; i++)
        name = strncmp(job.env[i], NAME, strlen(NAME)) ? name : job.env[i] + strlen(NAME);
    if (job.region)
        network_first_use();
    settle();
    timed.workload = name;
    timed.path = job.argv[0];
    timed.whole = job.region;
    timed.arguments = job.region ? job.argv + 1 : NULL;
    timed.seconds = job.seconds;
    if (timed_run(&timed))
        show_output();
    power_off();
}
