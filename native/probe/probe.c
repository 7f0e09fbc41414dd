/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A QEMU plugin that says which plugin API this QEMU has, and ends it: for `kdelta doctor`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* How the plugin API's qemu_info_t begins, in all versions of it. */
struct info {
    const char *target_name;
    struct {
        int min;
        int cur;
    } version;
};

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;

EXPORT int qemu_plugin_install(uint64_t id, const struct info *info, int argc, char **argv)
{
    (void)id, (void)argc, (void)argv;
    printf("plugin-api %s %d %d\n", info->target_name, info->version.min, info->version.cur);
    exit(0);
}
