/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The 32 queries in the order of their numbers, in SQL that all databases understand. */
#include "wisconsin.h"

#define SELECTION(n, from, attribute, low, high) \
    "INSERT INTO result_" n " SELECT * FROM " from " WHERE " attribute " BETWEEN " low " AND " high
#define ASELB(n, x, attribute) \
    "INSERT INTO result_" n " SELECT * FROM tenktup1" x " a, tenktup2" x " b" \
    " WHERE a." attribute " = b." attribute " AND b." attribute " < 1000"
#define ABPRIME(n, x, attribute) \
    "INSERT INTO result_" n " SELECT * FROM tenktup1" x " a, bprime" x " b WHERE a." attribute " = b." attribute
#define CSELASELB(n, x, attribute) \
    "INSERT INTO result_" n " SELECT * FROM onektup" x " c, tenktup1" x " a, tenktup2" x " b" \
    " WHERE c." attribute " = a." attribute " AND a." attribute " = b." attribute " AND a." attribute " < 1000"
#define AGGREGATE(n, x, what, by) "INSERT INTO result_" n " SELECT " what " FROM tenktup1" x by
#define BY_PERCENT " GROUP BY onepercent"
#define INDEXED "_indexed"

/* %s is the new tuple. */
#define INSERT(x) "INSERT INTO tenktup1" x " VALUES %s"
#define DELETE(x) "DELETE FROM tenktup1" x " WHERE unique1 = 10001"
#define UPDATE(x, attribute, old, new) "UPDATE tenktup1" x " SET " attribute " = " new " WHERE " attribute " = " old

const struct query queries[QUERIES] = {
    {"select-1pct", SELECTION("01", "tenktup1", "unique2", "0", "99"), ONE_TUPLE, false, 0, 0},
    {"select-10pct", SELECTION("02", "tenktup1", "unique2", "792", "1791"), ONE_TUPLE, false, 0, 0},
    {"select-1pct-clustered", SELECTION("03", "tenktup1_indexed", "unique2", "0", "99"), ONE_TUPLE, true, 0, 0},
    {"select-10pct-clustered", SELECTION("04", "tenktup1_indexed", "unique2", "792", "1791"), ONE_TUPLE, true, 0, 0},
    {"select-1pct-nonclustered", SELECTION("05", "tenktup1_indexed", "unique1", "0", "99"), ONE_TUPLE, true, 0, 0},
    {"select-10pct-nonclustered", SELECTION("06", "tenktup1_indexed", "unique1", "792", "1791"), ONE_TUPLE, true, 0, 0},
    {"fetch-one-clustered", "SELECT * FROM tenktup1_indexed WHERE unique2 = 2001", TO_CLIENT, true, 0, 0},
    {"fetch-1pct-clustered", "SELECT * FROM tenktup1_indexed WHERE unique2 BETWEEN 0 AND 99", TO_CLIENT, true, 0, 0},
    {"join-aselb", ASELB("09", "", "unique2"), TWO_TUPLES, false, 0, 0},
    {"join-abprime", ABPRIME("10", "", "unique2"), TWO_TUPLES, false, 0, 0},
    {"join-cselaselb", CSELASELB("11", "", "unique2"), THREE_TUPLES, false, 0, 0},
    {"join-aselb-clustered", ASELB("12", INDEXED, "unique2"), TWO_TUPLES, true, 0, 0},
    {"join-abprime-clustered", ABPRIME("13", INDEXED, "unique2"), TWO_TUPLES, true, 0, 0},
    {"join-cselaselb-clustered", CSELASELB("14", INDEXED, "unique2"), THREE_TUPLES, true, 0, 0},
    {"join-aselb-nonclustered", ASELB("15", INDEXED, "unique1"), TWO_TUPLES, true, 0, 0},
    {"join-abprime-nonclustered", ABPRIME("16", INDEXED, "unique1"), TWO_TUPLES, true, 0, 0},
    {"join-cselaselb-nonclustered", CSELASELB("17", INDEXED, "unique1"), THREE_TUPLES, true, 0, 0},
    {"project-1pct", "INSERT INTO result_18 SELECT DISTINCT two, four, ten, twenty, onepercent, string4 FROM tenktup1",
     PROJECTED_6, false, 0, 0},
    {"project-100pct",
     "INSERT INTO result_19 SELECT DISTINCT two, four, ten, twenty, onepercent, tenpercent, twentypercent,"
     " fiftypercent, unique3, evenonepercent, oddonepercent, stringu1, stringu2, string4 FROM tenktup1",
     PROJECTED_14, false, 0, 0},
    {"min", AGGREGATE("20", "", "MIN(unique2)", ""), ONE_VALUE, false, 0, 0},
    {"min-groups", AGGREGATE("21", "", "MIN(unique3)", BY_PERCENT), ONE_VALUE, false, 0, 0},
    {"sum-groups", AGGREGATE("22", "", "SUM(unique3)", BY_PERCENT), ONE_VALUE, false, 0, 0},
    {"min-clustered", AGGREGATE("23", INDEXED, "MIN(unique2)", ""), ONE_VALUE, true, 0, 0},
    {"min-groups-clustered", AGGREGATE("24", INDEXED, "MIN(unique3)", BY_PERCENT), ONE_VALUE, true, 0, 0},
    {"sum-groups-clustered", AGGREGATE("25", INDEXED, "SUM(unique3)", BY_PERCENT), ONE_VALUE, true, 0, 0},
    {"insert", INSERT(""), NO_RESULT, false, 0, DELETE("")},
    {"delete", DELETE(""), NO_RESULT, false, INSERT(""), 0},
    {"update-key", UPDATE("", "unique2", "1491", "10001"), NO_RESULT, false, 0, UPDATE("", "unique2", "10001", "1491")},
    {"insert-indexed", INSERT(INDEXED), NO_RESULT, true, 0, DELETE(INDEXED)},
    {"delete-indexed", DELETE(INDEXED), NO_RESULT, true, INSERT(INDEXED), 0},
    {"update-key-indexed", UPDATE(INDEXED, "unique2", "1491", "10001"), NO_RESULT, true, 0,
     UPDATE(INDEXED, "unique2", "10001", "1491")},
    {"update-attribute-indexed", UPDATE(INDEXED, "unique1", "1491", "10001"), NO_RESULT, true, 0,
     UPDATE(INDEXED, "unique1", "10001", "1491")},
};
