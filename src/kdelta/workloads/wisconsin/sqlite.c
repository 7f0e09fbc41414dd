/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SQLite, in this process, with its own defaults: a file with a rollback journal, and 2 MB of cache. */
#include "wisconsin.h"

#include <stdio.h>

/* Of sqlite3.h, which promises that they stay as they are. */
#define SQLITE_OK 0
typedef int row_callback(void *rows, int n, char **values, char **names);
static struct {
    int (*open)(const char *path, void **db);
    int (*exec)(void *db, const char *sql, row_callback *callback, void *rows, char **error);
    const char *(*libversion)(void);
} api;
static void *connection;

static int take_row(void *rows, int n, char **values, char **names)
{
    (void)names;
    for (int i = 0; i < n; i++)
        rows_field(rows, values[i], i == n - 1);
    return 0;
}

static void execute(const char *sql, struct rows *rows)
{
    char *error = NULL;

    if (api.exec(connection, sql, rows ? take_row : NULL, rows, &error) != SQLITE_OK)
        fail("SQLite refuses %.80s: %s", sql, error ? error : "it does not say why");
}

static void start(void)
{
    void *library = library_open("libsqlite3.so.0");

    *(void **)&api.open = library_symbol(library, "sqlite3_open");
    *(void **)&api.exec = library_symbol(library, "sqlite3_exec");
    *(void **)&api.libversion = library_symbol(library, "sqlite3_libversion");
    if (api.open(WORK_FOLDER "/database", &connection) != SQLITE_OK)
        fail("SQLite cannot open " WORK_FOLDER "/database");
    printf("SQLite %s\n", api.libversion());
}

const struct database sqlite = {
    .name = "sqlite",
    .free_mib = 96,
    .empty = "DELETE FROM %s",
    .statistics = "ANALYZE %s",
    .start = start,
    .execute = execute,
};
