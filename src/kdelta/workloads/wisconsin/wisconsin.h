/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Wisconsin benchmark on a database: what the parts offer each other. */
#ifndef WISCONSIN_H
#define WISCONSIN_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WORK_FOLDER "/tmp/wisconsin"
#define MAX_SQL (64 << 10)

/* Rows as a database gave them: fields apart by bars, each row with a NUL at its end. */
struct rows {
    char *text;
    size_t size, room;
    uint64_t count;
};

/* A database: how it is started (no region has begun), and told SQL. What it refuses ends the process. */
struct database {
    const char *name;
    unsigned free_mib;      /* what it and the relations take of the guest's memory */
    const char *empty;      /* removes all rows of the relation %s, and leaves nothing to be done later */
    const char *statistics; /* gathers what the planner knows of the relation %s */
    const char *cluster;    /* orders the relation %s by its primary key, where that is not so from the start */
    void (*start)(void);
    void (*execute)(const char *sql, struct rows *rows); /* rows may be NULL where there are none */
};

extern const struct database sqlite, mariadb, postgresql;

/* One of the 32 queries. Its result goes to the relation result_NN, or, if it has no columns, to the client. */
struct query {
    const char *name, *sql;
    enum { NO_RESULT, TO_CLIENT, ONE_TUPLE, TWO_TUPLES, THREE_TUPLES, PROJECTED_6, PROJECTED_14, ONE_VALUE } result;
    bool indexed;          /* on the relations with indices */
    const char *before;    /* what must be so that it can be executed */
    const char *undo;      /* what takes back its effect */
};

#define QUERIES 32
extern const struct query queries[QUERIES];

/* relations.c */
void relations_make(const struct database *db, bool indexed);
void relations_make_results(const struct database *db, size_t query);
const char *relations_new_tuple(void); /* the values of the tuple that is inserted */
/* A query for one row, which differs if the relation does. */
size_t relations_state(char *sql, size_t room, const char *relation);

/* rows.c */
void rows_clear(struct rows *rows);
void rows_field(struct rows *rows, const char *value, bool last);
uint64_t rows_checksum(const struct rows *rows); /* the same in whatever order */

/* results.c */
void results_expect(const char *text);
void results_check(const char *name, const struct rows *rows);

/* server.c */
void server_add_word(const char *word); /* to the words that the server is started with */
void server_start(char *const argv[], uid_t user, bool (*ready)(void));
const char *server_trouble(void); /* what is reported of a server that has ended; nothing of one that runs */
void run_to_end(char *const argv[], uid_t user, const char *what);
const char *found_file(const char *pattern);

/* libraries.c */
void *library_open(const char *name);
void *library_symbol(void *library, const char *name);

/* telling.c: each ends the process where it cannot do what it says */
void tell_operation(const char *name);
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void last_lines(const char *path, char *text, size_t room);
long must(long result, const char *what);

#endif
