/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that attack the guest's init, its kernel and its machine. */
#define _GNU_SOURCE
#include "kinds.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

const struct kind system_kinds[] = {
    {"kill-all", kill_all}, {"signals-to-init", signals_to_init}, {"writes-into-init", writes_into_init},
    {"sysrq-panic", sysrq_panic}, {"sysrq-boot", sysrq_boot}, {"sysrq-off", sysrq_off}, {"sysrq-all", sysrq_all},
    {"boots-again", boots_again}, {"halts", halts}, {"powers-off", powers_off}, {"remounts", remounts},
    {"unmounts", unmounts}, {"clock-back", clock_back}, {"removes-itself", removes_itself}, {"removes", removes},
    {"exec-forever", exec_forever}, {"traces-itself", traces_itself}, {"stops", stops}, {"closes", closes},
    {"dumps-core", dumps_core}, {"sleeps", sleeps}, {"device-memory", device_memory},
    {"loads-a-module", loads_a_module}, {"ports", ports}, {"no-interrupts", no_interrupts}, {"settings", settings},
    {"output-files", output_files}, {"random-calls", random_calls}, {NULL, NULL},
};
