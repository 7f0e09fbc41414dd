/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client libraries of databases, as the distribution has them: loaded by name, so that no header is needed. */
#include "wisconsin.h"

#include <dlfcn.h>

void *library_open(const char *name)
{
    void *library = dlopen(name, RTLD_NOW);

    if (!library)
        fail("no client library: %s", dlerror());
    return library;
}

void *library_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    if (!symbol)
        fail("the client library is another than expected: %s", dlerror());
    return symbol;
}
