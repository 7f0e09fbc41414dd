/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the results of queries must be: computed from the definition of the data, by another program. */
#include "wisconsin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct result {
    const char *name;
    uint64_t rows, checksum;
} results[] = {
#include "expected.h"
};
#define RESULTS (sizeof results / sizeof *results)

static struct result *find(const char *name, size_t size)
{
    for (size_t i = 0; i < RESULTS; i++)
        if (strlen(results[i].name) == size && !memcmp(results[i].name, name, size))
            return &results[i];
    return NULL;
}

/* NAME:ROWS:CHECKSUM: what is expected instead. */
void results_expect(const char *text)
{
    struct result *result = find(text, strcspn(text, ":"));
    char *end = (char *)text + strcspn(text, ":");

    if (!result || *end != ':')
        fail("not a result: %s", text);
    result->rows = strtoull(end + 1, &end, 10);
    result->checksum = *end == ':' ? strtoull(end + 1, &end, 16) : 0;
}

void results_check(const char *name, const struct rows *rows)
{
    const struct result *result = find(name, strlen(name));
    uint64_t checksum = rows_checksum(rows);

    if (!result)
        fail("the result of %s is not known", name);
    if (rows->count != result->rows || checksum != result->checksum)
        fail("the result of %s is wrong: %llu rows with the checksum %016llx, expected were %llu with %016llx", name,
             (unsigned long long)rows->count, (unsigned long long)checksum, (unsigned long long)result->rows,
             (unsigned long long)result->checksum);
}
