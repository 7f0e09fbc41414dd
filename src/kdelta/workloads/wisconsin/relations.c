/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The relations by their definition, and how they are loaded: plain ones, and copies with a clustered index on unique2
 * and another one on unique1. */
#include "wisconsin.h"

#include <stdio.h>
#include <string.h>

#define LETTERS 26
#define SIGNIFICANT 7 /* letters of stringu1 and stringu2 */
#define STRING_BYTES 52
#define ROWS_A_COMMAND 100
#define NEW_UNIQUE 10001
#define TUPLE_BYTES 320

/* unique1 is unique2 in the order that powers of a generator modulo a prime make, without those that are too large: the
 * published program's. TENKTUP2 begins at another place of the same sequence. */
static const struct relation {
    const char *name;
    uint64_t tuples, generator, prime, start;
    uint64_t first; /* of how many tuples of that sequence it has only the first ones; 0: all */
} relations[] = {
    {"onektup", 1000, 279, 1009, 279, 0},
    {"tenktup1", 10000, 2969, 10007, 2969, 0},
    {"tenktup2", 10000, 2969, 10007, 4242, 0},
    {"bprime", 10000, 2969, 10007, 4242, 1000},
};
#define RELATIONS (sizeof relations / sizeof *relations)

#define INTEGERS 13
static const char *const integers[INTEGERS] = {
    "unique1", "unique2", "two", "four", "ten", "twenty", "onepercent", "tenpercent", "twentypercent",
    "fiftypercent", "unique3", "evenonepercent", "oddonepercent",
};
static const char *const strings[] = {"stringu1", "stringu2", "string4"};

static void string_of(uint64_t unique, char *text)
{
    memset(text, 'x', STRING_BYTES);
    for (size_t i = SIGNIFICANT; i--; unique /= LETTERS)
        text[i] = (char)('A' + unique % LETTERS);
    text[STRING_BYTES] = '\0';
}

static size_t tuple(char *text, size_t room, uint64_t unique1, uint64_t unique2)
{
    static const char cycle[] = "AHOV";
    unsigned u1 = (unsigned)unique1, u2 = (unsigned)unique2, percent = u1 % 100;
    char stringu1[STRING_BYTES + 1], stringu2[STRING_BYTES + 1], string4[STRING_BYTES + 1];

    string_of(unique1, stringu1);
    string_of(unique2, stringu2);
    memset(string4, 'x', STRING_BYTES);
    memset(string4, cycle[u2 % 4], 4);
    string4[STRING_BYTES] = '\0';
    return (size_t)snprintf(text, room, "(%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,'%s','%s','%s')", u1, u2, u1 % 2,
                            u1 % 4, u1 % 10, u1 % 20, percent, u1 % 10, u1 % 5, u1 % 2, u1, 2 * percent, 2 * percent + 1,
                            stringu1, stringu2, string4);
}

const char *relations_new_tuple(void)
{
    static char text[TUPLE_BYTES];

    tuple(text, sizeof text, NEW_UNIQUE, NEW_UNIQUE);
    return text;
}

/* The columns of one tuple, their names with a prefix; `key`: what unique2 is besides an integer. */
static size_t columns(char *sql, size_t room, const char *prefix, const char *key)
{
    size_t used = 0;

    for (size_t i = 0; i < INTEGERS; i++)
        used += (size_t)snprintf(sql + used, room - used, "%s%s INTEGER NOT NULL%s, ", prefix, integers[i],
                                 !strcmp(integers[i], "unique2") ? key : "");
    for (size_t i = 0; i < 3; i++)
        used += (size_t)snprintf(sql + used, room - used, "%s%s CHAR(%d) NOT NULL%s", prefix, strings[i], STRING_BYTES,
                                 i < 2 ? ", " : "");
    return used;
}

static void create(const struct database *db, const char *name, const char *ending, const char *key)
{
    char sql[4096];
    size_t used = (size_t)snprintf(sql, sizeof sql, "CREATE TABLE %s%s (", name, ending);

    used += columns(sql + used, sizeof sql - used, "", key);
    snprintf(sql + used, sizeof sql - used, ")");
    db->execute(sql, NULL);
}

static void with_name(const struct database *db, const char *format, const char *name)
{
    char sql[256];
    int used = 0;

    /* A name stands in at most two places. */
    used = snprintf(sql, sizeof sql, format, name, name);
    if (used >= (int)sizeof sql)
        fail("%s is too long", format);
    db->execute(sql, NULL);
}

static void load(const struct database *db, const struct relation *r)
{
    static char sql[MAX_SQL];
    uint64_t wanted = r->first ? r->first : r->tuples, seed = r->start;
    size_t used = 0;

    db->execute("BEGIN", NULL);
    for (uint64_t unique2 = 0; unique2 < wanted; unique2++) {
        if (unique2)
            do
                seed = seed * r->generator % r->prime;
            while (seed > r->tuples);
        used += unique2 % ROWS_A_COMMAND ? (size_t)snprintf(sql + used, sizeof sql - used, ",")
                                         : (size_t)snprintf(sql, sizeof sql, "INSERT INTO %s VALUES ", r->name);
        used += tuple(sql + used, sizeof sql - used, seed - 1, unique2);
        if ((unique2 + 1) % ROWS_A_COMMAND == 0 || unique2 + 1 == wanted) {
            db->execute(sql, NULL);
            used = 0;
        }
    }
    db->execute("COMMIT", NULL);
}

static void make_indexed(const struct database *db, const char *name)
{
    char sql[256], copy[64];

    snprintf(copy, sizeof copy, "%s_indexed", name);
    create(db, name, "_indexed", " PRIMARY KEY");
    snprintf(sql, sizeof sql, "INSERT INTO %s SELECT * FROM %s ORDER BY unique2", copy, name);
    db->execute(sql, NULL);
    if (db->cluster)
        with_name(db, db->cluster, copy);
    with_name(db, "CREATE UNIQUE INDEX %s_unique1 ON %s (unique1)", copy);
    with_name(db, db->statistics, copy);
}

void relations_make(const struct database *db, bool indexed)
{
    for (size_t i = 0; i < RELATIONS; i++) {
        create(db, relations[i].name, "", "");
        load(db, &relations[i]);
        with_name(db, db->statistics, relations[i].name);
    }
    for (size_t i = 0; indexed && i < RELATIONS; i++)
        make_indexed(db, relations[i].name);
}

void relations_make_results(const struct database *db, size_t query)
{
    static const char *const prefixes[] = {"a_", "b_", "c_"};
    static const char six[] =
        "two INTEGER, four INTEGER, ten INTEGER, twenty INTEGER, onepercent INTEGER, string4 CHAR(52)";
    static const char three[] = "stringu1 CHAR(52), stringu2 CHAR(52), string4 CHAR(52)";
    char sql[8192];
    size_t used = (size_t)snprintf(sql, sizeof sql, "CREATE TABLE result_%02zu (", query + 1), tuples = 0;

    switch (queries[query].result) {
    case NO_RESULT: case TO_CLIENT: return;
    case ONE_TUPLE: tuples = 1; break;
    case TWO_TUPLES: tuples = 2; break;
    case THREE_TUPLES: tuples = 3; break;
    case ONE_VALUE: used += (size_t)snprintf(sql + used, sizeof sql - used, "value BIGINT"); break;
    case PROJECTED_6: used += (size_t)snprintf(sql + used, sizeof sql - used, "%s", six); break;
    case PROJECTED_14:
        for (size_t i = 2; i < INTEGERS; i++)
            used += (size_t)snprintf(sql + used, sizeof sql - used, "%s INTEGER, ", integers[i]);
        used += (size_t)snprintf(sql + used, sizeof sql - used, "%s", three);
    }
    for (size_t i = 0; i < tuples; i++) {
        used += (size_t)snprintf(sql + used, sizeof sql - used, "%s", i ? ", " : "");
        used += columns(sql + used, sizeof sql - used, prefixes[i], "");
    }
    snprintf(sql + used, sizeof sql - used, ")");
    db->execute(sql, NULL);
}

size_t relations_state(char *sql, size_t room, const char *relation)
{
    size_t used = (size_t)snprintf(sql, room, "SELECT COUNT(*)");

    for (size_t i = 0; i < INTEGERS; i++)
        used += (size_t)snprintf(sql + used, room - used, ", SUM(%s)", integers[i]);
    for (size_t i = 0; i < 3; i++)
        used += (size_t)snprintf(sql + used, room - used, ", MIN(%s), MAX(%s)", strings[i], strings[i]);
    return used + (size_t)snprintf(sql + used, room - used, " FROM %s", relation);
}
