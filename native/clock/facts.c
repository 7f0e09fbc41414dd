/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "facts.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "kdelta_timed.h"

#define NT_GNU_BUILD_ID 3
#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static char line[1 << 15];
static size_t at;

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *format, ...)
{
    va_list words;
    int size;

    va_start(words, format);
    size = vsnprintf(line + at, sizeof line - at, format, words);
    va_end(words);
    if (size > 0 && (size_t)size < sizeof line - at)
        at += (size_t)size;
}

static void add_text(const char *name, const char *text)
{
    add(",\"%s\":\"", name);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < ' ' || *c == '"' || *c == '\\' || *c >= 0x7f)
            add("\\u%04x", *c);
        else
            add("%c", *c);
    add("\"");
}

/* The bytes of a file, up to its end or that of the room; -1 without it. */
static ssize_t bytes_of(const char *path, char *bytes, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size, all = 0;

    if (fd < 0)
        return -1;
    while ((size_t)all < room && (size = read(fd, bytes + all, room - (size_t)all)) > 0)
        all += size;
    close(fd);
    return all;
}

/* The first line of a file; empty without it. */
static const char *line_of(const char *path)
{
    static char text[4096];
    ssize_t size = bytes_of(path, text, sizeof text - 1);

    text[size > 0 ? size : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static void add_file(const char *name, const char *path)
{
    add_text(name, line_of(path));
}

static void add_of_cpu(const char *name, int cpu, const char *file)
{
    char path[160];

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    add_file(name, path);
}

/* A field of /proc/cpuinfo, of the first processor that has it. */
static void add_cpuinfo(const char *name, const char *const *fields)
{
    static char text[1 << 15];
    ssize_t size = bytes_of("/proc/cpuinfo", text, sizeof text - 1);

    text[size > 0 ? size : 0] = '\0';
    for (; *fields; fields++) {
        const char *found = strstr(text, *fields), *value = found ? strchr(found, ':') : NULL;

        if (value) {
            static char copy[4096];

            snprintf(copy, sizeof copy, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
            add_text(name, copy);
            return;
        }
    }
    add_text(name, "");
}

/* The note that the linker writes: of an image and of its vmlinux the same. */
static void add_build_id(void)
{
    static char notes[1 << 14];
    ssize_t size = bytes_of("/sys/kernel/notes", notes, sizeof notes);

    add(",\"build_id\":\"");
    for (ssize_t start = 0; start + 12 <= size;) {
        uint32_t head[3]; /* sizes of name and value, type */
        ssize_t name, value;

        memcpy(head, notes + start, sizeof head);
        name = start + 12, value = name + (ssize_t)((head[0] + 3) & ~3u);
        if (value + (ssize_t)head[1] > size)
            break;
        if (head[2] == NT_GNU_BUILD_ID && head[0] == 4 && !memcmp(notes + name, "GNU", 4)) {
            for (uint32_t i = 0; i < head[1]; i++)
                add("%02x", (unsigned char)notes[value + i]);
            break;
        }
        start = value + (ssize_t)((head[1] + 3) & ~3u);
    }
    add("\"");
}

static uint64_t hash_bytes(const void *bytes, size_t size, uint64_t hash)
{
    for (const unsigned char *at = bytes, *end = at + size; at < end; at++)
        hash = (hash ^ *at) * FNV_PRIME;
    return hash;
}

/* Of a program, on top of that of others. */
static uint64_t hash_of(const char *path, uint64_t hash)
{
    static unsigned char bytes[1 << 16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size;

    while (fd >= 0 && (size = read(fd, bytes, sizeof bytes)) > 0)
        hash = hash_bytes(bytes, (size_t)size, hash);
    if (fd >= 0)
        close(fd);
    return hash;
}

/* Of what a program is called with. */
static void add_arguments(char *const *words)
{
    uint64_t hash = FNV_BASIS;

    for (; words && *words; words++)
        hash = hash_bytes(*words, strlen(*words) + 1, hash);
    add(",\"arguments\":\"%016llx\"", (unsigned long long)hash);
}

const char *boot_id(void)
{
    return line_of("/proc/sys/kernel/random/boot_id");
}

const char *online_cpus(void)
{
    return line_of("/sys/devices/system/cpu/online");
}

void put_facts(void (*put)(const char *bytes, size_t size), const char *workload, const char *path, char *const *arguments,
               const char *folder, int cpu)
{
    static const char *const models[] = {"model name", "Hardware", "Processor", "CPU part", "uarch", "isa", NULL};
    static const char *const microcodes[] = {"microcode", NULL}, *const flags[] = {"flags", "Features", NULL};
    uint64_t hash = hash_of("/proc/self/exe", FNV_BASIS);
    struct utsname name;
    struct statfs files;

    uname(&name);
    at = 0;
    if (path)
        hash = hash_of(path, hash);
    add("{\"kdelta_bundle\":1,\"bundle\":\"%016llx\"", (unsigned long long)hash);
    add_text("workload", workload);
    add_arguments(arguments);
    add(",\"when\":%lld,\"cpu\":%d,\"page_bytes\":%ld", (long long)time(NULL), cpu, sysconf(_SC_PAGESIZE));
    add_text("clock", KDELTA_TICKS);
    add_text("machine", name.machine);
    add_text("release", name.release);
    add_file("version", "/proc/version");
    add_build_id();
    add_text("boot_id", boot_id());
    add_file("command_line", "/proc/cmdline");
    add_file("uptime", "/proc/uptime");
    add_file("load", "/proc/loadavg");
    add_file("memory", "/proc/meminfo");
    add_cpuinfo("cpu_model", models);
    add_cpuinfo("cpu_flags", flags);
    add_cpuinfo("microcode", microcodes);
    add_text("online", online_cpus());
    add_file("smt", "/sys/devices/system/cpu/smt/control");
    add_file("boost", "/sys/devices/system/cpu/cpufreq/boost");
    add_file("no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo");
    add_of_cpu("governor", cpu, "cpufreq/scaling_governor");
    add_of_cpu("driver", cpu, "cpufreq/scaling_driver");
    add_of_cpu("least_khz", cpu, "cpufreq/scaling_min_freq");
    add_of_cpu("most_khz", cpu, "cpufreq/scaling_max_freq");
    add_file("temperature", "/sys/class/thermal/thermal_zone0/temp");
    add_file("clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    add_file("paranoid", "/proc/sys/kernel/perf_event_paranoid");
    add(",\"file_system\":%lld}\n", statfs(folder, &files) ? 0LL : (long long)files.f_type);
    put(line, at);
}
