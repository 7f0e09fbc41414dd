/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A QEMU plugin that reports which versions of the plugin interface this QEMU takes, and ends it. Compiled for a version that it does
 * not take, QEMU refuses it and names the nearest one.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

EXPORT int qemu_plugin_install(uint64_t id, const struct info *info, int argc, char **argv)
{
    (void)id, (void)argc, (void)argv;
    printf("plugin-api %s %d %d\n", info->target_name, info->version.min, info->version.cur);
    exit(0);
}
