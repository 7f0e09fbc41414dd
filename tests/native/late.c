/* SPDX-License-Identifier: GPL-2.0-or-later */
/* late LIBRARY: loads turns.so as QEMU loads a plugin, too late to replace any function. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void (*want)(void) = library ? dlsym(library, "turns_want") : NULL;

    if (!want)
        return 2;
    want();
    return 0;
}
