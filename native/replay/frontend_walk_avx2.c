/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inner loop by vectors: it counts the same. */
#include "frontend_state.h"

#ifdef __x86_64__
#include <immintrin.h>

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2")))
#define VECTORS_HERE
#include "frontend_walk.h"
#endif
