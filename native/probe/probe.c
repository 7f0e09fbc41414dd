/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A QEMU plugin that reports which versions of the plugin interface this QEMU takes, and by what it runs, and ends it. Compiled for a version that it does
 * not take, QEMU refuses it and names the nearest one.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How the interface's qemu_info_t begins, in all versions of it. */
struct info {
    const char *target_name;
    struct {
        int min;
        int cur;
    } version;
};

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = PLUGIN_API;

static void put_hex(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        printf("%02x", (unsigned char)bytes[i]);
}

static void put_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char part[4096];
    size_t size;

    putchar(' ');
    while (file && (size = fread(part, 1, sizeof part, file)))
        put_hex(part, size);
    if (file)
        fclose(file);
}

/* What was executed in the end, with its words and variables, which a script in QEMU's place may have added to. */
static void put_process(void)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path);

    printf("runs-as ");
    put_hex(path, size > 0 ? (size_t)size : 0);
    put_file("/proc/self/cmdline");
    put_file("/proc/self/environ");
    putchar('\n');
}

EXPORT int qemu_plugin_install(uint64_t id, const struct info *info, int argc, char **argv)
{
    (void)id, (void)argc, (void)argv;
    printf("plugin-api %s %d %d\n", info->target_name, info->version.min, info->version.cur);
    put_process();
    exit(0);
}
