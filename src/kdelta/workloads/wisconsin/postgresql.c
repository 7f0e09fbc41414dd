/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PostgreSQL: a server whose data folder is made here, and its client library, through a Unix socket. */
#include "wisconsin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA WORK_FOLDER "/data"
#define USER 1000 /* it refuses to be root */

/* Of libpq-fe.h. */
#define CONNECTION_OK 0
#define PGRES_COMMAND_OK 1
#define PGRES_TUPLES_OK 2
static struct {
    void *(*connect)(const char *words);
    int (*status)(const void *connection);
    void (*finish)(void *connection);
    void *(*exec)(void *connection, const char *sql);
    int (*result_status)(const void *result);
    int (*ntuples)(const void *result);
    int (*nfields)(const void *result);
    char *(*getvalue)(const void *result, int row, int column);
    void (*clear)(void *result);
    char *(*error)(const void *connection);
    int (*version)(const void *connection);
} api;
static void *connection;

static bool ready(void)
{
    connection = api.connect("host=" WORK_FOLDER " user=wisconsin dbname=postgres");
    if (api.status(connection) == CONNECTION_OK)
        return true;
    api.finish(connection);
    return false;
}

static void execute(const char *sql, struct rows *rows)
{
    void *result = api.exec(connection, sql);
    int status = api.result_status(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail("PostgreSQL refuses %.80s: %s%s", sql, api.error(connection), server_trouble());
    for (int row = 0, n = api.nfields(result); rows && row < api.ntuples(result); row++)
        for (int i = 0; i < n; i++)
            rows_field(rows, api.getvalue(result, row, i), i == n - 1);
    api.clear(result);
}

static void load_library(void)
{
    void *library = library_open("libpq.so.5");

    *(void **)&api.connect = library_symbol(library, "PQconnectdb");
    *(void **)&api.status = library_symbol(library, "PQstatus");
    *(void **)&api.finish = library_symbol(library, "PQfinish");
    *(void **)&api.exec = library_symbol(library, "PQexec");
    *(void **)&api.result_status = library_symbol(library, "PQresultStatus");
    *(void **)&api.ntuples = library_symbol(library, "PQntuples");
    *(void **)&api.nfields = library_symbol(library, "PQnfields");
    *(void **)&api.getvalue = library_symbol(library, "PQgetvalue");
    *(void **)&api.clear = library_symbol(library, "PQclear");
    *(void **)&api.error = library_symbol(library, "PQerrorMessage");
    *(void **)&api.version = library_symbol(library, "PQserverVersion");
}

/* initdb asks who it is, and the server does not run as root. */
static void make_user(void)
{
    static const char line[] = "wisconsin:x:1000:1000::/tmp:/bin/sh\n";
    int fd = (int)must(open("/etc/passwd", O_WRONLY | O_CREAT | O_APPEND, 0644), "/etc/passwd");

    must(write(fd, line, sizeof line - 1), "/etc/passwd");
    close(fd);
    must(chown(WORK_FOLDER, USER, USER), WORK_FOLDER);
    setenv("HOME", "/tmp", 1);
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("TZ", "UTC", 1);
}

/* What would be done later or by more processes is off: autovacuum, replication, parallel scans, writing ahead of a
 * checkpoint, and the compiler of expressions; https://www.postgresql.org/docs/15/runtime-config.html has them. */
static void start(void)
{
    char *init[] = {
        (char *)found_file("/usr/lib/postgresql/*/bin/initdb"), "--pgdata=" DATA, "--username=wisconsin",
        "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions", "--wal-segsize=1",
        NULL,
    };
    char *words[] = {
        (char *)found_file("/usr/lib/postgresql/*/bin/postgres"), "-D", DATA, "-c", "listen_addresses=", "-c",
        "unix_socket_directories=" WORK_FOLDER, "-c", "autovacuum=off", "-c", "jit=off", "-c",
        "max_parallel_workers_per_gather=0", "-c", "max_logical_replication_workers=0", "-c",
        "bgwriter_lru_maxpages=0", "-c", "checkpoint_timeout=1d", "-c", "max_wal_size=1GB", "-c",
        "shared_buffers=64MB", NULL,
    };

    load_library();
    make_user();
    run_to_end(init, USER, "making the data folder");
    server_start(words, USER, ready);
    printf("PostgreSQL %d.%d\n", api.version(connection) / 10000, api.version(connection) % 10000);
}

const struct database postgresql = {
    .name = "postgresql",
    .free_mib = 384,
    .empty = "TRUNCATE TABLE %s",
    .statistics = "ANALYZE %s",
    .cluster = "CLUSTER %s USING %s_pkey",
    .start = start,
    .execute = execute,
};
