/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SQLite in memory: inserts, updates, joins, aggregates, sorts, deletes, text functions, and statements that are compiled again. */
#include "pass.h"
#include "sqlite3.h"

enum { ROWS = 400 };

static sqlite3 *db;
static char heap[8 << 20];

static int count_rows(void *rows, int columns, char **values, char **names)
{
    (void)columns, (void)values, (void)names;
    ++*(int *)rows;
    return 0;
}

static int run(const char *sql)
{
    int rows = 0;

    check(sqlite3_exec(db, sql, count_rows, &rows, NULL) == SQLITE_OK, sql);
    return rows;
}

void prepare(void)
{
    /* SQLite's own allocator on a fixed heap: where things lie does not depend on the C library. */
    check(sqlite3_config(SQLITE_CONFIG_HEAP, heap, sizeof heap, 64) == SQLITE_OK, "heap");
    check(sqlite3_open(":memory:", &db) == SQLITE_OK, "open");
    run("CREATE TABLE item(id INTEGER PRIMARY KEY, kind INT, price REAL, name TEXT)");
    run("CREATE TABLE sale(id INTEGER PRIMARY KEY, item INT, n INT)");
    run("CREATE INDEX sale_item ON sale(item)");
    run("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<400) "
        "INSERT INTO item SELECT i, i*7%13, i*1.25, 'item ' || (i*37%401) FROM c");
    run("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<1200) "
        "INSERT INTO sale SELECT i, 1+i*31%400, i%9 FROM c");
}

static void insert_many(void)
{
    sqlite3_stmt *insert;
    uint64_t state = 1234567;

    check(sqlite3_prepare_v2(db, "INSERT INTO sale(item, n) VALUES(?, ?)", -1, &insert, NULL) == SQLITE_OK, "prepare");
    for (int i = 0; i < ROWS / 4; i++) {
        sqlite3_bind_int(insert, 1, 1 + (int)(draw_number(&state) % ROWS));
        sqlite3_bind_int(insert, 2, (int)(draw_number(&state) % 9));
        check(sqlite3_step(insert) == SQLITE_DONE, "insert");
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
}

void pass(void)
{
    run("BEGIN");
    insert_many();
    run("UPDATE item SET price=price*1.01 WHERE kind IN (2,3,5)");
    check(run("SELECT kind, count(*), sum(n*price) FROM sale JOIN item ON item.id=sale.item GROUP BY kind ORDER BY 3") == 13, "join");
    check(run("SELECT upper(substr(name,6)) u, length(name) FROM item WHERE name LIKE '%3%' ORDER BY u DESC LIMIT 20") == 20, "text");
    run("DELETE FROM sale WHERE item IN (SELECT id FROM item WHERE kind=7)");
    run("SELECT i.id, (SELECT max(n) FROM sale s WHERE s.item=i.id) m FROM item i WHERE i.id%5=0 ORDER BY m, i.id");
    run("SELECT printf('%08.3f %s', price, name), coalesce(nullif(kind,4),-1) FROM item WHERE id BETWEEN 30 AND 70");
    run("WITH RECURSIVE f(a,b) AS (SELECT 0,1 UNION ALL SELECT b,a+b FROM f LIMIT 40) SELECT group_concat(a) FROM f");
    run("CREATE TEMP TABLE t AS SELECT DISTINCT n, kind FROM sale, item WHERE sale.item=item.id; DROP TABLE t");
    run("SELECT kind, row_number() OVER (PARTITION BY kind ORDER BY price) FROM item WHERE id<60");
    run("ROLLBACK");
}
