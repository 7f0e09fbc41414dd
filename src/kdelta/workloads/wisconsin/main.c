/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the relations into a database, and runs queries, each as a region: an iteration is one execution of it. What
 * was found is checked, and taken back, outside the regions. "total" is all of them, one after the other, as one
 * iteration.
 */
#include "wisconsin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "kdelta_clock.h"

#define TOTAL "total"
#define MOST_LOOPS 1000
#define UPDATED 27         /* the query whose state the relation without indices is in after all of them */
#define UPDATED_INDEXED 30 /* of those with indices: this one's and the next one's */

static const struct database *const databases[] = {&sqlite, &mariadb, &postgresql};
#define DATABASES (sizeof databases / sizeof *databases)

static const struct database *db;
static unsigned long loops = 1;
static bool clock_wanted;
static struct timespec settle_time;
static uint64_t start_ticks; /* which the host has chosen: its place on the grid is kept */

/* The texts of a query, with the new tuple in them. */
static struct text { char before[512], sql[512], undo[512]; } texts[QUERIES];
static struct rows found[QUERIES], state;

static void write_texts(void)
{
    const char *new_tuple = relations_new_tuple();

    for (size_t i = 0; i < QUERIES; i++) {
        snprintf(texts[i].before, sizeof texts[i].before, queries[i].before ? queries[i].before : "", new_tuple);
        snprintf(texts[i].sql, sizeof texts[i].sql, queries[i].sql, new_tuple);
        snprintf(texts[i].undo, sizeof texts[i].undo, queries[i].undo ? queries[i].undo : "", new_tuple);
    }
}

static void tell(const char *sql)
{
    if (*sql)
        db->execute(sql, NULL);
}

static bool has_relation(size_t query)
{
    return queries[query].result != NO_RESULT && queries[query].result != TO_CLIENT;
}

static void check_state(const char *name, bool indexed)
{
    char sql[2048];

    relations_state(sql, sizeof sql, indexed ? "tenktup1_indexed" : "tenktup1");
    rows_clear(&state);
    db->execute(sql, &state);
    results_check(name, &state);
}

/* That a query found or did what it should. */
static void check(size_t query)
{
    char sql[64];

    if (queries[query].result == NO_RESULT) {
        check_state(queries[query].name, queries[query].indexed);
        return;
    }
    if (has_relation(query)) {
        snprintf(sql, sizeof sql, "SELECT * FROM result_%02zu", query + 1);
        rows_clear(&found[query]);
        db->execute(sql, &found[query]);
    }
    results_check(queries[query].name, &found[query]);
}

static void take_back(size_t query)
{
    char name[32], sql[64];

    tell(texts[query].undo);
    if (!has_relation(query))
        return;
    snprintf(name, sizeof name, "result_%02zu", query + 1);
    snprintf(sql, sizeof sql, db->empty, name);
    db->execute(sql, NULL);
}

static void execute(size_t query)
{
    db->execute(texts[query].sql, queries[query].result == TO_CLIENT ? &found[query] : NULL);
}

/* From one query on, before another one. */
struct operation {
    const char *name;
    size_t first, end;
};

static void before(const struct operation *op)
{
    for (size_t i = op->first; i < op->end; i++)
        rows_clear(&found[i]);
    if (op->end - op->first == 1)
        tell(texts[op->first].before);
}

static void step(const struct operation *op)
{
    for (size_t i = op->first; i < op->end; i++)
        execute(i);
}

static void after(const struct operation *op)
{
    bool all = op->end - op->first > 1;

    for (size_t i = op->first; i < op->end; i++)
        if (!all || queries[i].result != NO_RESULT)
            check(i);
    if (all) {
        check_state(queries[UPDATED].name, false);
        check_state(TOTAL, true);
    }
    for (size_t i = op->end; i-- > op->first;)
        take_back(i);
}

static void tell_clock(const char *name, uint64_t ticks)
{
    char text[256];
    int size;

    if (!clock_wanted || !kdelta_clock_counts() || loops > 1)
        return;
    size = snprintf(text, sizeof text, "region-clock\n%s %llu %llu\n", name, (unsigned long long)ticks,
                    (unsigned long long)kdelta_clock_overhead());
    kdelta_message(text, (size_t)size);
}

static void settle(void)
{
    if (settle_time.tv_sec)
        kdelta_clock_rest(&settle_time, start_ticks);
}

static void run(const struct operation *op)
{
    uint64_t begin, end = 0;

    tell_operation(op->name);
    /* Once unmeasured: what is read or mapped for the first time, is then. */
    before(op);
    step(op);
    after(op);
    for (unsigned long n = 0; n < loops; n++) {
        before(op);
        settle();
        kdelta_announce(op->name);
        begin = kdelta_clock_begin();
        step(op);
        kdelta_iter();
        end = kdelta_clock_end();
        after(op);
        tell_clock(op->name, end - begin);
    }
    printf("%s: checked\n", op->name);
    fflush(stdout);
}

static bool find(const char *name, struct operation *op)
{
    *op = (struct operation){name, 0, QUERIES};
    if (!strcmp(name, TOTAL))
        return true;
    for (size_t i = 0; i < QUERIES; i++)
        if (!strcmp(queries[i].name, name)) {
            *op = (struct operation){queries[i].name, i, i + 1};
            return true;
        }
    return false;
}

static _Noreturn void usage(const char *wrong)
{
    dprintf(STDERR_FILENO,
            "wisconsin: %s\n"
            "usage: wisconsin [--list] [--database sqlite|mariadb|postgresql] [--loops N] [--clock]\n"
            "                 [--settle SECONDS] [--server WORD] [--expect QUERY:ROWS:CHECKSUM] [OPERATION...]\n",
            wrong);
    _exit(2);
}

static unsigned long number(const char *text, unsigned long most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*end || end == text || value > most)
        usage(text);
    return value;
}

static int list(void)
{
    for (size_t i = 0; i < QUERIES; i++)
        puts(queries[i].name);
    return puts(TOTAL) < 0;
}

static void option(const char *name, char *value)
{
    if (!strcmp(name, "--settle")) {
        settle_time.tv_sec = (time_t)number(value, 3600);
    } else if (!strcmp(name, "--loops")) {
        loops = number(value, MOST_LOOPS);
    } else if (!strcmp(name, "--server")) {
        server_add_word(value);
    } else if (!strcmp(name, "--expect")) {
        results_expect(value);
    } else if (!strcmp(name, "--database")) {
        for (size_t i = 0; i < DATABASES; i++)
            if (!strcmp(databases[i]->name, value))
                db = databases[i];
        if (strcmp(db->name, value))
            usage(value);
    } else {
        usage(name);
    }
}

static void must_have_memory(void)
{
    struct sysinfo info;
    unsigned long long mib;

    must(sysinfo(&info), "the guest's memory");
    mib = (unsigned long long)info.freeram * info.mem_unit >> 20;
    if (mib < db->free_mib)
        fail("%llu MiB of memory are free, and %s with the relations needs %u: give the guest more (--memory)", mib,
             db->name, db->free_mib);
}

static void make_relations(char **names, size_t n)
{
    bool wanted[QUERIES] = {false}, indexed = false;

    for (size_t at = 0; at < n; at++) {
        struct operation op;

        find(names[at], &op);
        for (size_t i = op.first; i < op.end; i++) {
            wanted[i] = true;
            indexed = indexed || queries[i].indexed;
        }
    }
    relations_make(db, indexed);
    for (size_t i = 0; i < QUERIES; i++)
        if (wanted[i])
            relations_make_results(db, i);
}

int main(int argc, char **argv)
{
    static char *all[QUERIES];
    size_t n;

    start_ticks = kdelta_clock_now();
    db = &sqlite;
    for (argv++, argc--; argc && **argv == '-'; argv++, argc--) {
        if (!strcmp(*argv, "--list"))
            return list();
        if (!strcmp(*argv, "--clock")) {
            clock_wanted = true;
            continue;
        }
        if (argc < 2)
            usage(*argv);
        option(argv[0], argv[1]);
        argv++, argc--;
    }
    for (int i = 0; i < argc; i++)
        if (!find(argv[i], &(struct operation){0}))
            usage(argv[i]);
    for (size_t i = 0; i < QUERIES; i++)
        all[i] = (char *)queries[i].name;
    n = argc ? (size_t)argc : QUERIES;
    must_have_memory();
    must(mkdir(WORK_FOLDER, 0777), WORK_FOLDER);
    write_texts();
    db->start();
    fflush(stdout);
    tell_operation("loading the relations");
    make_relations(argc ? argv : all, n);
    for (size_t i = 0; i < n; i++) {
        struct operation op;

        find(argc ? argv[i] : all[i], &op);
        run(&op);
    }
    return 0;
}
