/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the host wants to know of the kernel that it booted: what it is, what it chose, and its symbols. */
#include "agent.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/klog.h>
#include <sys/utsname.h>

#define NO_LIMIT SIZE_MAX
#define LOG_MAX_BYTES (1 << 20)
#define LOG_READ_ALL 3 /* syslog(2) */
#define VULNERABILITIES "/sys/devices/system/cpu/vulnerabilities"

static void hello(const struct quiet *quiet)
{
    char cmdline[4096], clocksource[64];
    struct utsname name;

    uname(&name);
    read_file("/proc/cmdline", cmdline, sizeof cmdline);
    cmdline[strcspn(cmdline, "\n")] = '\0';
    read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", clocksource, sizeof clocksource);
    clocksource[strcspn(clocksource, "\n")] = '\0';
    message("hello", "release %s\nmachine %s\ncmdline %s\nclocksource %s\nquiet %s\nquiet_seconds %lld\n", name.release,
            name.machine, cmdline, clocksource, quiet->reached ? "yes" : "no", (long long)quiet->seconds);
}

static void file_message(const char *type, const char *path)
{
    size_t sent;

    message_start(type);
    sent = message_file(path, NO_LIMIT);
    message_end();
    if (!sent)
        message("note", "nothing to read in %s", path);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void vulnerabilities(void)
{
    struct dirent **entries;
    int n = scandir(VULNERABILITIES, &entries, NULL, by_name);

    message_start("vulnerabilities");
    for (int i = 0; i < n; i++) {
        char path[sizeof VULNERABILITIES + sizeof entries[i]->d_name];

        if (*entries[i]->d_name == '.')
            continue;
        snprintf(path, sizeof path, VULNERABILITIES "/%s", entries[i]->d_name);
        message_text("%s: ", entries[i]->d_name);
        message_file(path, NO_LIMIT);
    }
    message_end();
}

/* The whole mapping, which the kernel shows in /proc/self/maps: the ELF file and what pads its last page. */
static void vdso(void)
{
    static char maps[16 << 10];
    uint64_t base = getauxval(AT_SYSINFO_EHDR), end;
    char start[32], *line;

    message_start("vdso");
    message_bytes(&base, sizeof base);
    snprintf(start, sizeof start, "%llx-", (unsigned long long)base);
    read_file("/proc/self/maps", maps, sizeof maps);
    line = base ? strstr(maps, start) : NULL;
    end = line ? strtoull(line + strlen(start), NULL, 16) : 0;
    if (end > base)
        message_bytes((const void *)(uintptr_t)base, (size_t)(end - base));
    message_end();
}

/* The kernel's messages since power-on, whatever of them its console shows. */
static void kernel_log(void)
{
    char *text = malloc(LOG_MAX_BYTES);
    int size = text ? klogctl(LOG_READ_ALL, text, LOG_MAX_BYTES) : 0;

    message_start("kernel-log");
    if (size > 0)
        message_bytes(text, (size_t)size);
    message_end();
    free(text);
}

/* What became of the command line: the kernel gives its init what it does not know, as arguments and environment (init/main.c). */
static void parameters(void)
{
    file_message("arguments", "/proc/self/cmdline");
    file_message("environment", "/proc/self/environ");
}

void facts_send(const struct quiet *quiet)
{
    hello(quiet);
    parameters();
    kernel_log();
    file_message("cpuinfo", "/proc/cpuinfo");
    vulnerabilities();
    vdso();
    write_file("/proc/sys/kernel/kptr_restrict", "0");
    file_message("kallsyms", "/proc/kallsyms");
}

/* The symbols of modules: lines of /proc/kallsyms that end in [NAME]. */
void facts_send_modules(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    FILE *symbols = fopen("/proc/kallsyms", "re");

    message_start("modules");
    while (symbols && (size = getline(&line, &capacity, symbols)) > 0)
        if (size > 1 && line[size - 2] == ']')
            message_bytes(line, (size_t)size);
    message_end();
    if (symbols)
        fclose(symbols);
    free(line);
}
