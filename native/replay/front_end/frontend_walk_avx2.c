/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inner loop by vectors: it counts the same. */
#include "frontend_state.h"

#ifdef __x86_64__
#include <immintrin.h>

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2")))
#define VECTORS_HERE
/* From which lane each comes when what is in lane `way` becomes the first: those before it move by one. */
static const uint32_t moves[64] = {
    0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 2, 3, 4, 5, 6, 7, 0, 0, 1, 3, 4, 5, 6, 7, 0, 0, 1, 2, 4, 5, 6, 7,
    0, 0, 1, 2, 3, 5, 6, 7, 0, 0, 1, 2, 3, 4, 6, 7, 0, 0, 1, 2, 3, 4, 5, 7, 0, 0, 1, 2, 3, 4, 5, 6,
};

#include "frontend_walk.h"
#endif
