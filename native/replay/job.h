/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is asked of a replay; native.py mirrors it. */
#ifndef KDELTA_JOB_H
#define KDELTA_JOB_H

#include "plan.h"

enum kind { LINES, BRANCHES, HIERARCHY };
enum { L1I, L2, CACHES }; /* of a HIERARCHY; else there is one cache */
enum { L1I_MISSES, L2_CODE, L2_DATA, KINDS }; /* of misses; functions have the first two */
enum { WARM = 1, MEMO = 2, PORTABLE = 4 };
enum status { DONE, NO_MEMORY, TOO_MANY_LINES };
#define NOT_HERE UINT8_MAX

enum { TOUCHES, UNITS, SIMULATED, STATES, STATS };

enum replacement { LEAST_RECENT, ROUND_ROBIN, RANDOM }; /* replacement.h */

struct replay_cache { uint32_t sets, ways, line_shift, replacement; };

/* What is asked for. total: n_layouts x CONTEXTS; by_function: n_layouts x n_functions or NULL; stats: STATS sums. With a HIERARCHY,
 * total is n_layouts x KINDS x CONTEXTS, by_function n_layouts x 2 x n_functions. shifts: NULL, or of each function the size of its
 * lines; NOT_HERE if they do not go through this cache. A shift is 8 at least.
 */
struct replay_job {
    uint32_t kind, flags, threads;
    struct replay_cache caches[CACHES];
    uint64_t n_layouts, n_functions;
    const uint64_t *layouts; /* n_layouts x n_functions: where each function starts */
    const uint8_t *shifts;
    uint64_t *total, *by_function, *stats;
};

#endif
