/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inner loop where a hit changes nothing: ROUND_ROBIN and RANDOM.
 *
 * Here, too, is no branch on hit or miss, since in code that is larger than the cache it could not be predicted. On a hit, ROUND_ROBIN
 * stores the set as it was, and RANDOM writes the tag elsewhere.
 */
#include "touch.h"

#include "replacement.h"

#define SET_OF(g, touch) ((touch).line & ((g)->sets - 1))
#define TAG_OF(g, touch) ((touch).line >> (g)->set_bits)

/* Defines NAME, for tags of that type. */
#define TOUCH_ROUND_ROBIN(NAME, TYPE) \
    static uint32_t *NAME(const struct geometry *g, void *state, const struct touch *touches, size_t n, uint32_t *log) \
    { \
        for (size_t i = 0; i < n; i++) { \
            TYPE *set = (TYPE *)state + (size_t)SET_OF(g, touches[i]) * g->lanes, tag = (TYPE)TAG_OF(g, touches[i]); \
            uint32_t way = 0; \
\
            while (way < g->ways && set[way] != tag) \
                way++; \
            if (way < g->ways) \
                continue; \
            memmove(set + 1, set, (g->ways - 1) * sizeof *set); \
            set[0] = tag; \
            *log++ = touches[i].function; \
        } \
        return log; \
    }

#define TOUCH_RANDOM(NAME, TYPE) \
    static uint32_t *NAME(const struct geometry *g, void *state, const struct touch *touches, size_t n, uint32_t *log) \
    { \
        uint32_t *times = (uint32_t *)((uint8_t *)state + g->times_at); \
\
        for (size_t i = 0; i < n; i++) { \
            TYPE *set = (TYPE *)state + (size_t)SET_OF(g, touches[i]) * g->lanes, tag = (TYPE)TAG_OF(g, touches[i]); \
            uint32_t way = 0; \
\
            while (way < g->ways && set[way] && set[way] != tag) \
                way++; \
            if (way < g->ways && set[way] == tag) \
                continue; \
            if (way == g->ways) \
                way = random_way(++*times, g->ways); \
            set[way] = tag; \
            *log++ = touches[i].function; \
        } \
        return log; \
    }

TOUCH_ROUND_ROBIN(round_robin16, uint16_t)
TOUCH_ROUND_ROBIN(round_robin32, uint32_t)
TOUCH_RANDOM(random16, uint16_t)
TOUCH_RANDOM(random32, uint32_t)

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi")))
#define MOST_WAYS 8

/* -1 in lanes of the ways that exist. */
static const int16_t ways_of[16] = { -1, -1, -1, -1, -1, -1, -1, -1 };

/* Up to 8 ways: a set is one vector of 16-bit tags. */
AVX2 static uint32_t *round_robin_avx2(const struct geometry *g, void *state, const struct touch *touches, size_t n,
                                       uint32_t *log)
{
    const __m128i exist = _mm_loadu_si128((const __m128i *)(ways_of + MOST_WAYS - g->ways));
    __m128i *sets = state;

    for (size_t i = 0; i < n; i++) {
        __m128i *set = &sets[SET_OF(g, touches[i])], old = _mm_load_si128(set);
        __m128i tag = _mm_set1_epi16((short)TAG_OF(g, touches[i]));
        __m128i found = _mm_cmpeq_epi16(old, tag);
        uint32_t missed = (uint32_t)_mm_testz_si128(found, found);
        __m128i come = _mm_and_si128(_mm_alignr_epi8(old, tag, 14), exist);

        _mm_store_si128(set, _mm_blendv_epi8(old, come, _mm_set1_epi32(-(int)missed)));
        *log = touches[i].function;
        log += missed;
    }
    return log;
}

AVX2 static uint32_t *random_avx2(const struct geometry *g, void *state, const struct touch *touches, size_t n,
                                  uint32_t *log)
{
    const __m128i exist = _mm_loadu_si128((const __m128i *)(ways_of + MOST_WAYS - g->ways));
    uint32_t *kept = (uint32_t *)((uint8_t *)state + g->times_at), times = *kept;
    __m128i *sets = state;
    uint16_t nowhere;

    for (size_t i = 0; i < n; i++) {
        __m128i *set = &sets[SET_OF(g, touches[i])], old = _mm_load_si128(set);
        uint16_t tag = (uint16_t)TAG_OF(g, touches[i]);
        __m128i found = _mm_cmpeq_epi16(old, _mm_set1_epi16((short)tag));
        __m128i empty = _mm_and_si128(_mm_cmpeq_epi16(old, _mm_setzero_si128()), exist);
        uint32_t missed = (uint32_t)_mm_testz_si128(found, found), leaves = missed;
        uint32_t free_bytes = (uint32_t)_mm_movemask_epi8(empty), way = random_way(times + 1, g->ways);

        if (__builtin_expect(free_bytes != 0, 0)) {
            way = (uint32_t)__builtin_ctz(free_bytes) / 2;
            leaves = 0;
        }
        *(missed ? (uint16_t *)set + way : &nowhere) = tag;
        times += leaves;
        *log = touches[i].function;
        log += missed;
    }
    *kept = times;
    return log;
}
#endif

touch_fn *touch_choose_other(struct geometry *g, bool few, bool portable)
{
    bool in_turn = g->replacement == ROUND_ROBIN;

    g->lanes = g->ways;
#ifdef __x86_64__
    if (few && !portable && g->ways <= MOST_WAYS && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi")) {
        g->lanes = MOST_WAYS;
        return in_turn ? round_robin_avx2 : random_avx2;
    }
#endif
    (void)portable;
    if (in_turn)
        return few ? round_robin16 : round_robin32;
    return few ? random16 : random32;
}
