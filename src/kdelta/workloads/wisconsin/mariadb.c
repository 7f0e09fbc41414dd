/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MariaDB: a server with InnoDB, and its client library, through a Unix socket. */
#include "wisconsin.h"

#include <stdio.h>
#include <sys/stat.h>

#define SOCKET WORK_FOLDER "/socket"
#define DATA WORK_FOLDER "/data"

/* Of mysql.h, whose functions libmariadb keeps since version 3 of its interface. */
static struct {
    void *(*init)(void *mysql);
    void *(*connect)(void *mysql, const char *host, const char *user, const char *password, const char *db,
                     unsigned port, const char *socket, unsigned long flags);
    int (*query)(void *mysql, const char *sql);
    void *(*store_result)(void *mysql);
    unsigned (*num_fields)(void *result);
    char **(*fetch_row)(void *result);
    void (*free_result)(void *result);
    const char *(*error)(void *mysql);
    unsigned (*field_count)(void *mysql);
    const char *(*server_info)(void *mysql);
} api;
static void *connection;

/* Without its own tables (users, time zones, ...), which nothing here needs. Joins without an index hash one relation:
 * the default, nested loops, compares ten million pairs for each of three queries. Threads are as few as can be, and
 * what they would do later (statistics, the buffer pool's dump) is off. The options are those of
 * https://mariadb.com/kb/en/server-system-variables and .../innodb-system-variables. */
static char *const words[] = {
    "/usr/sbin/mariadbd", "--no-defaults", "--user=root", "--datadir=" DATA, "--socket=" SOCKET,
    "--pid-file=" WORK_FOLDER "/pid", "--tmpdir=/tmp",
    "--skip-networking", "--skip-grant-tables", "--skip-log-bin", "--performance-schema=OFF",
    "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M", "--innodb-use-native-aio=0",
    "--innodb-flush-method=fsync", "--innodb-stats-persistent=0", "--innodb-stats-auto-recalc=0",
    "--innodb-purge-threads=1", "--join-cache-level=4", "--innodb-read-io-threads=2",
    "--innodb-write-io-threads=2", "--innodb-buffer-pool-dump-at-shutdown=0",
    "--innodb-buffer-pool-load-at-startup=0", NULL,
};

static bool ready(void)
{
    void *one = api.init(NULL);

    if (!one)
        fail("the client library has no memory");
    if (!api.connect(one, NULL, "root", NULL, NULL, 0, SOCKET, 0))
        return false; /* what it holds is little */
    connection = one;
    return true;
}

static void execute(const char *sql, struct rows *rows)
{
    void *result;

    if (api.query(connection, sql))
        fail("MariaDB refuses %.80s: %s%s", sql, api.error(connection), server_trouble());
    if (!api.field_count(connection))
        return;
    result = api.store_result(connection);
    if (!result)
        fail("MariaDB gives no result of %.80s: %s", sql, api.error(connection));
    unsigned n = api.num_fields(result);

    for (char **row; rows && (row = api.fetch_row(result));)
        for (unsigned i = 0; i < n; i++)
            rows_field(rows, row[i], i == n - 1);
    api.free_result(result);
}

static void start(void)
{
    void *library = library_open("libmariadb.so.3");

    *(void **)&api.init = library_symbol(library, "mysql_init");
    *(void **)&api.connect = library_symbol(library, "mysql_real_connect");
    *(void **)&api.query = library_symbol(library, "mysql_query");
    *(void **)&api.store_result = library_symbol(library, "mysql_store_result");
    *(void **)&api.num_fields = library_symbol(library, "mysql_num_fields");
    *(void **)&api.fetch_row = library_symbol(library, "mysql_fetch_row");
    *(void **)&api.free_result = library_symbol(library, "mysql_free_result");
    *(void **)&api.error = library_symbol(library, "mysql_error");
    *(void **)&api.field_count = library_symbol(library, "mysql_field_count");
    *(void **)&api.server_info = library_symbol(library, "mysql_get_server_info");
    must(mkdir(DATA, 0700), DATA);
    server_start(words, 0, ready);
    printf("MariaDB %s\n", api.server_info(connection));
    execute("CREATE DATABASE wisconsin", NULL);
    execute("USE wisconsin", NULL);
}

const struct database mariadb = {
    .name = "mariadb",
    .free_mib = 320,
    .empty = "TRUNCATE TABLE %s",
    .statistics = "ANALYZE TABLE %s",
    .start = start,
    .execute = execute,
};
