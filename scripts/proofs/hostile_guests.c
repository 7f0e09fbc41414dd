/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a hostile program may do in a guest: the kind is its first word. scripts/proofs/hostile.py runs each. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kdelta.h"

#define ESCAPES "\x1b]0;HOSTILE\a\x1b[2J\x1b[8m\rHOSTILE\b\x7f\x9b" "8m\xc2\x9b" "8m\xe2\x80\xae\xe2\x80\xa8\xff\xfe\x0e"

static const char *self;

static void region(const char *name)
{
    kdelta_begin(name);
    for (int i = 0; i < 100; i++) {
        getppid();
        kdelta_iter();
    }
    kdelta_end();
}

static void say(const char *text)
{
    kdelta_message(text, strlen(text));
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);

    if (fd >= 0) {
        if (write(fd, text, strlen(text)) < 0)
            perror(path);
        close(fd);
    }
}

static void forever(void)
{
    for (;;)
        __asm__ volatile("");
}

/* --- what takes all there is --- */

static void fork_bomb(void)
{
    for (;;)
        fork();
}

static void exec_bomb(void)
{
    for (;;)
        if (!fork())
            execl(self, self, "exec-bomb", NULL);
}

static void memory(void)
{
    for (;;) {
        char *at = mmap(NULL, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (at != MAP_FAILED)
            memset(at, 1, 1 << 24);
    }
}

static void memory_by_many(void)
{
    for (int i = 0; i < 64; i++)
        if (!fork())
            memory();
    pause();
}

static void map_all(void)
{
    size_t size = (size_t)1 << 46;

    for (; size >= 4096; size /= 2)
        while (mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
            ;
}

static void fill_files(void)
{
    static char page[1 << 16];
    const char *folders[] = {"/", "/tmp", "/run", "/dev", "/dev/shm", "/var/tmp"};

    for (int i = 0; i < 6; i++) {
        char path[64];
        int fd;

        snprintf(path, sizeof path, "%s/full", folders[i]);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        while (write(fd, page, sizeof page) > 0)
            ;
    }
}

static void many_files(void)
{
    for (unsigned i = 0;; i++) {
        char path[64];

        snprintf(path, sizeof path, "/tmp/f%u", i);
        if (open(path, O_WRONLY | O_CREAT, 0600) < 0 && errno == EMFILE)
            for (int fd = 3; fd < 1024; fd++)
                close(fd);
    }
}

static void *spin(void *nothing)
{
    forever();
    return nothing;
}

static void threads(void)
{
    pthread_t one;

    for (int i = 0; i < 100; i++)
        pthread_create(&one, NULL, spin, NULL);
    pthread_exit(NULL);
}

static void real_time(void)
{
    struct sched_param most = {.sched_priority = 99};

    sched_setscheduler(0, SCHED_FIFO, &most);
    put("/proc/sys/kernel/sched_rt_runtime_us", "-1");
    forever();
}

/* --- what is printed --- */

static void print_escapes(void)
{
    for (int i = 0; i < 100; i++) {
        fputs(ESCAPES "\n", stdout);
        fputs(ESCAPES "\n", stderr);
    }
    fflush(stdout);
    exit(3);
}

static void print_bytes(void)
{
    for (int i = 0; i < 1 << 16; i++)
        putchar(i ^ i >> 8);
    exit(3);
}

static void to_console(void)
{
    for (int i = 0; i < 100; i++) {
        put("/dev/console", ESCAPES "\n");
        put("/dev/ttyS0", ESCAPES "\n");
        put("/dev/kmsg", "<0>" ESCAPES "\n");
    }
    put("/proc/sysrq-trigger", "c");
}

static void to_log(void)
{
    int fd = open("/dev/kmsg", O_WRONLY);

    for (;;)
        if (write(fd, "<0>Kernel panic - not syncing: " ESCAPES "\n", 60) < 0)
            break;
}

/* --- names of regions --- */

static void name_longest(void)
{
    static char name[256];

    memset(name, 0xff, 255);
    region(name);
}

static void name_too_long(void)
{
    static char name[70000];

    memset(name, '\x1b', sizeof name - 1);
    region(name);
}

static void many_names(void)
{
    char name[32];

    for (int i = 0; i < 9000; i++) {
        snprintf(name, sizeof name, "\x1b[2Jn\n%d", i);
        kdelta_begin(name);
        kdelta_end();
    }
}

/* --- messages of the agent --- */

static void lies(void)
{
    say("result\nexit 0\n");
    exit(3);
}

static void lies_and_off(void)
{
    region("a");
    say("result\nexit 0 " ESCAPES);
    KDELTA_MARK(KDELTA_OFF);
    forever();
}

static void clock_lies(void)
{
    region("a");
    say("region-clock\na -1 1\na nan nan\na 99999999999999999999999999999999 1\nb\n\xff\xff 1 1\na 1 2 3 4\n\n" ESCAPES " 1 1\n");
}

static void symbol_lies(void)
{
    region("a");
    say("kallsyms\nzzzz T a\nffffffffffffffffffff T b\n-1 T c\n0 T " ESCAPES "\nffffffff81000000 T \n\n\xff\n");
}

static void fact_lies(void)
{
    region("a");
    say("cpuinfo\n" ESCAPES "\nflags : \xff\nmodel name\t: " ESCAPES "\n");
    say("vulnerabilities\n" ESCAPES);
    say("hello\nrelease " ESCAPES "\nmachine x\ncmdline " ESCAPES "\nquiet no\nquiet_seconds zzz\n");
    say("group\n" ESCAPES);
    say("kernel-log\n" ESCAPES);
    say("note\n" ESCAPES);
    say("memory\n99999999999999999999999999 " ESCAPES);
    say("many-regions\n" ESCAPES);
    say("environment\n\xff=" ESCAPES);
    say("arguments\n" ESCAPES);
}

static void module_lies(void)
{
    region("a");
    say("vdso\nnot an ELF file");
    say("vdso\n\x7f" "ELF\x02\x01\x01 and what lies");
    say("modules\n" ESCAPES " 99999999999999999999999 1 - Live 0xzz\nx -1 0 - Live 0xffffffffffffffffffff\n");
    say("packets\na -1 -1\na x y\n" ESCAPES);
}

static void failure_lies(void)
{
    say("failure\n" ESCAPES);
    say("warning\n" ESCAPES);
    say("overflow\n" ESCAPES);
    say("stdout\n" ESCAPES);
    say("stderr\n" ESCAPES);
    exit(3);
}

static void type_lies(void)
{
    static char type[1 << 20];

    region("a");
    say("");
    say("\n");
    say("../../../tmp/HOSTILE\nx");
    say("/tmp/HOSTILE\nx");
    say(ESCAPES "\nx");
    memset(type, 'x', sizeof type - 1);
    say(type);
    for (int i = 0; i < 20000; i++) {
        snprintf(type, 32, "type-%d\nx", i);
        say(type);
    }
}

static void warnings(void)
{
    region("a");
    for (int i = 0; i < 100000; i++)
        say("warning\nHOSTILE " ESCAPES "\n");
}

/* --- marks --- */

static void iterations_without(void)
{
    for (int i = 0; i < 1000; i++)
        kdelta_iter();
    kdelta_end();
    kdelta_end();
    kdelta_join();
}

static void many_iterations(void)
{
    kdelta_begin("many");
    for (int i = 0; i < 1000000; i++)
        kdelta_iter();
    kdelta_end();
}

static void never_ends(void)
{
    kdelta_begin("a");
    kdelta_begin("b");
    kdelta_iter();
    kdelta_begin("");
}

static void *marks(void *name)
{
    for (int i = 0; i < 200; i++) {
        kdelta_begin(name);
        kdelta_iter();
        say(name);
        kdelta_end();
        if (i % 20 == 0)
            sched_yield();
    }
    return NULL;
}

static void marks_at_once(void)
{
    pthread_t one, other;

    pthread_create(&one, NULL, marks, "one");
    pthread_create(&other, NULL, marks, "other\nother");
    pthread_join(one, NULL);
    pthread_join(other, NULL);
}

static void marks_by_processes(void)
{
    for (int i = 0; i < 8; i++)
        if (!fork()) {
            marks("child");
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
}

static void into_marks(void)
{
    static const unsigned char code[] = {0x0f, 0x1f, 0x80, 0x04, 0x00, 0x64, 0x4b, 0xc3};
    unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (int i = 0; i < 7; i++) {
        if (!fork()) {
            memcpy(at, code, sizeof code);
            at[3] = (unsigned char)(1 + i);
            ((void (*)(void))(uintptr_t)(at + i))();
            _exit(0);
        }
        wait(NULL);
    }
}

static void own_code(void)
{
    unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    kdelta_begin("own code");
    for (int i = 0; i < 20000; i++) {
        at[0] = 0xb8;
        memcpy(at + 1, &i, 4);
        at[5] = 0xc3;
        ((int (*)(void))(uintptr_t)at)();
        kdelta_iter();
    }
    kdelta_end();
}

static void all_kinds(void)
{
    unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char code[] = {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x64, 0x4b, 0xc3};

    for (int kind = 9; kind < 256; kind++) {
        code[3] = (unsigned char)kind;
        memcpy(at, code, sizeof code);
        ((void (*)(void))(uintptr_t)at)();
    }
}

static void asks_for_a_job(void)
{
    for (int i = 0; i < 100; i++)
        KDELTA_MARK(KDELTA_JOB KDELTA_NEXT_BLOCK);
}

static void arms(void)
{
    for (int i = 0; i < 20000; i++)
        kdelta_arm();
}

static void turns_off(void)
{
    region("a");
    KDELTA_MARK(KDELTA_OFF);
    forever();
}

/* --- the guest's init and its kernel --- */

static void kill_all(void)
{
    kill(-1, SIGKILL);
}

static void signals_to_init(void)
{
    for (int i = 1; i < 65; i++)
        kill(1, i);
    ptrace(PTRACE_ATTACH, 1, 0, 0);
    put("/proc/1/mem", "x");
    put("/proc/1/oom_score_adj", "1000");
    put("/proc/1/cgroup", "0");
}

static void writes_into_init(void)
{
    char line[512];
    FILE *maps = fopen("/proc/1/maps", "r");
    int fd = open("/proc/1/mem", O_RDWR);
    static char zeros[4096];

    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from = strtoul(line, NULL, 16);

        if (strstr(line, "r-x") && pwrite(fd, zeros, sizeof zeros, (off_t)from) < 0)
            perror("mem");
    }
}

static void sysrq(const char *keys)
{
    char key[2] = "";

    for (; *keys; keys++) {
        key[0] = *keys;
        put("/proc/sysrq-trigger", key);
    }
    pause();
}

static void sysrq_panic(void) { sysrq("c"); }
static void sysrq_boot(void) { sysrq("b"); }
static void sysrq_off(void) { sysrq("o"); }
static void sysrq_all(void) { sysrq("0123456789dfilmpqstwzeju"); }
static void boots_again(void) { reboot(RB_AUTOBOOT); }
static void halts(void) { reboot(RB_HALT_SYSTEM); }
static void powers_off(void) { reboot(RB_POWER_OFF); }

static void remounts(void)
{
    mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
    mount("tmpfs", "/proc", "tmpfs", 0, NULL);
    mount("tmpfs", "/sys", "tmpfs", 0, NULL);
    mount("tmpfs", "/run", "tmpfs", 0, NULL);
    mount("tmpfs", "/dev", "tmpfs", 0, NULL);
    mount("tmpfs", "/", "tmpfs", 0, NULL);
}

static void unmounts(void)
{
    const char *all[] = {"/dev/shm", "/dev/pts", "/dev", "/sys/fs/cgroup", "/sys", "/proc", "/tmp", "/run", "/"};

    for (int i = 0; i < 9; i++)
        umount2(all[i], MNT_DETACH);
}

static void clock_back(void)
{
    struct timeval when = {.tv_sec = 0};

    settimeofday(&when, NULL);
    region("a");
    when.tv_sec = 0x7fffffffff;
    settimeofday(&when, NULL);
}

static void removes_itself(void)
{
    unlink(self);
    region("a");
}

static void removes(void)
{
    const char *all[] = {"/init", "/job", "/dev/console", "/dev/null", "/dev/mem", "/dev/ttyS0"};

    for (int i = 0; i < 6; i++)
        unlink(all[i]);
    unlink(self);
}

static void exec_forever(void)
{
    execl(self, self, "exec-forever", NULL);
}

static void traces_itself(void)
{
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
}

static void stops(void)
{
    raise(SIGSTOP);
}

static void closes(void)
{
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    region("a");
}

static void dumps_core(void)
{
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

    setrlimit(RLIMIT_CORE, &all);
    put("/proc/sys/kernel/core_pattern", "/tmp/core");
    abort();
}

static void sleeps(void)
{
    for (;;)
        pause();
}

static void device_memory(void)
{
    int fd = open("/dev/mem", O_RDWR);
    char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0xfed00000);

    if (at != MAP_FAILED)
        memset(at, 0xff, 4096);
    at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        memset(at, 0xff, 1 << 20);
}

static void loads_a_module(void)
{
    static char module[4096] = "\x7f" "ELF\x02\x01\x01";

    syscall(SYS_init_module, module, sizeof module, "");
    syscall(SYS_kexec_load, 0, 0, NULL, 0);
    syscall(SYS_delete_module, "kernel", 0);
}

static void ports(void)
{
    iopl(3);
    for (int port = 0; port < 0x10000; port++)
        outb(0xff, (unsigned short)port);
    outw(0x2000, 0x604);
    outb(0x0, 0xf4);
}

static void no_interrupts(void)
{
    iopl(3);
    outb(0xff, 0x21); /* masks the PIC */
    outb(0xff, 0xa1);
    outb(0x30, 0x43); /* stops the PIT */
    forever();
}

static void settings(void)
{
    put("/proc/sys/kernel/panic", "-1");
    put("/proc/sys/kernel/hung_task_timeout_secs", "1");
    put("/proc/sys/kernel/pid_max", "1");
    put("/proc/sys/vm/overcommit_memory", "2");
    put("/proc/sys/vm/min_free_kbytes", "900000");
    put("/proc/sys/fs/file-max", "0");
    put("/sys/devices/system/cpu/cpu0/online", "0");
    put("/proc/sys/kernel/modprobe", "/tmp/x");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "acpi_pm");
    region("a");
}

static void output_files(void)
{
    /* What the agent reads back: the files of its standard output and error. */
    char path[256] = "";

    if (readlink("/proc/self/fd/1", path, sizeof path - 1) > 0) {
        unlink(path);
        if (symlink("/dev/zero", path))
            perror(path);
    }
    if (readlink("/proc/self/fd/2", path, sizeof path - 1) > 0) {
        unlink(path);
        if (mkfifo(path, 0600))
            perror(path);
    }
}

static void random_calls(void)
{
    srandom(1);
    for (int i = 0; i < 100000; i++)
        if (!fork()) {
            alarm(1);
            syscall(random() % 450, random(), random(), random(), random(), random(), random());
            _exit(0);
        } else {
            random();
            if (i % 16 == 15)
                while (waitpid(-1, NULL, WNOHANG) > 0)
                    ;
        }
}

static void good(void) { region("getppid"); }
static void star(void) { region("*all"); }
static void star_alone(void) { region("*"); }
static void no_name(void) { region(""); }
static void name_escapes(void) { region(ESCAPES); }
static void name_lines(void) { region("a\n\nregion b\n\tc\r\n"); }
static void name_separators(void) { region("a\xe2\x80\xa8" "b\xe2\x80\xa9" "c\xc2\x85"); }
static void name_invalid(void) { region("\xff\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80"); }
static void name_path(void) { region("../../../../tmp/HOSTILE"); }
static void name_markup(void) { region("<script>alert(1)</script>[bold red]x[/]%s%n{0}\"'`$(touch /tmp/HOSTILE)"); }

static const struct {
    const char *name;
    void (*act)(void);
} kinds[] = {
    {"good", good}, {"fork-bomb", fork_bomb}, {"exec-bomb", exec_bomb}, {"memory", memory}, {"memory-by-many", memory_by_many},
    {"map-all", map_all}, {"fill-files", fill_files}, {"many-files", many_files}, {"threads", threads}, {"real-time", real_time},
    {"print-escapes", print_escapes}, {"print-bytes", print_bytes}, {"to-console", to_console}, {"to-log", to_log},
    {"star", star}, {"star-alone", star_alone}, {"no-name", no_name}, {"name-escapes", name_escapes}, {"name-lines", name_lines},
    {"name-separators", name_separators}, {"name-invalid", name_invalid}, {"name-path", name_path}, {"name-markup", name_markup},
    {"name-longest", name_longest}, {"name-too-long", name_too_long}, {"many-names", many_names}, {"lies", lies},
    {"lies-and-off", lies_and_off}, {"clock-lies", clock_lies}, {"symbol-lies", symbol_lies}, {"fact-lies", fact_lies},
    {"module-lies", module_lies}, {"failure-lies", failure_lies}, {"type-lies", type_lies}, {"warnings", warnings},
    {"iterations-without", iterations_without}, {"many-iterations", many_iterations}, {"never-ends", never_ends},
    {"marks-at-once", marks_at_once}, {"marks-by-processes", marks_by_processes}, {"into-marks", into_marks}, {"own-code", own_code},
    {"all-kinds", all_kinds}, {"asks-for-a-job", asks_for_a_job}, {"arms", arms}, {"turns-off", turns_off}, {"kill-all", kill_all},
    {"signals-to-init", signals_to_init}, {"writes-into-init", writes_into_init}, {"sysrq-panic", sysrq_panic},
    {"sysrq-boot", sysrq_boot}, {"sysrq-off", sysrq_off}, {"sysrq-all", sysrq_all}, {"boots-again", boots_again}, {"halts", halts},
    {"powers-off", powers_off}, {"remounts", remounts}, {"unmounts", unmounts}, {"clock-back", clock_back},
    {"removes-itself", removes_itself}, {"removes", removes}, {"exec-forever", exec_forever}, {"traces-itself", traces_itself},
    {"stops", stops}, {"closes", closes}, {"dumps-core", dumps_core}, {"sleeps", sleeps}, {"device-memory", device_memory},
    {"loads-a-module", loads_a_module}, {"ports", ports}, {"no-interrupts", no_interrupts}, {"settings", settings},
    {"output-files", output_files}, {"random-calls", random_calls},
};

int main(int argc, char **argv)
{
    self = argv[0];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (argc < 2)
            puts(kinds[i].name);
        else if (!strcmp(argv[1], kinds[i].name)) {
            kinds[i].act();
            return 0;
        }
    return argc < 2 ? 0 : 99;
}
