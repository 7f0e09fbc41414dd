/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inner loop: a line becomes the most recent of its set, and what leaves the set tells whether it was there.
 *
 * There is no branch on hit or miss: both move the tags before the line's old place by one and put the line first. The other policies
 * are in touch_other.c.
 */
#include "touch.h"

#include "replacement.h"

#define SET_OF(g, touch) ((touch).line & ((g)->sets - 1))
#define TAG_OF(g, touch) ((touch).line >> (g)->set_bits)

static uint32_t *touch_portable16(const struct geometry *g, void *state, const struct touch *touches, size_t n,
                                  uint32_t *log)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t tag = (uint16_t)TAG_OF(g, touches[i]);
        uint16_t *set = (uint16_t *)state + (size_t)SET_OF(g, touches[i]) * g->lanes;

        *log = touches[i].function;
        log += kdelta_cache_touch16(set, g->ways, tag) != tag;
    }
    return log;
}

static uint32_t *touch_portable32(const struct geometry *g, void *state, const struct touch *touches, size_t n,
                                  uint32_t *log)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t tag = TAG_OF(g, touches[i]);
        uint32_t *set = (uint32_t *)state + (size_t)SET_OF(g, touches[i]) * g->lanes;

        *log = touches[i].function;
        log += kdelta_cache_touch32(set, g->ways, tag) != tag;
    }
    return log;
}

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi")))

/* Lanes from `ways` on are always empty: -1 in those that exist. */
static const int16_t ways_of[32] = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };

/* Up to 8 ways: a set is one vector of 16-bit tags. */
AVX2 static uint32_t *touch_avx2_8(const struct geometry *g, void *state, const struct touch *touches, size_t n,
                                   uint32_t *log)
{
    const __m128i exist = _mm_loadu_si128((const __m128i *)(ways_of + 16 - g->ways));
    const __m128i zero = _mm_setzero_si128(), upper = _mm_set_epi64x(-1, 0);
    __m128i *sets = state;

    for (size_t i = 0; i < n; i++) {
        __m128i *set = &sets[SET_OF(g, touches[i])], old = _mm_load_si128(set);
        __m128i tag = _mm_set1_epi16((short)TAG_OF(g, touches[i]));
        __m128i found = _mm_cmpeq_epi16(old, tag);
        __m128i moved = _mm_alignr_epi8(old, tag, 14);
        /* The sign bits of the lanes behind the place that was found, within each half: 0 - (0xffff << 16 * lane). */
        __m128i stay = _mm_sub_epi64(zero, found);
        /* And if it was found in the lower half, those of the upper one. */
        __m128i absent = _mm_slli_si128(_mm_cmpeq_epi64(found, zero), 8);

        stay = _mm_or_si128(stay, _mm_andnot_si128(absent, upper));
        _mm_store_si128(set, _mm_and_si128(_mm_blendv_epi8(moved, old, stay), exist));
        *log = touches[i].function;
        log += _mm_testz_si128(found, found);
    }
    return log;
}

/* -1 in lanes that stay when the tag is found in lane L: 16 of them from `behind + 16 - L` on; L = 16 if it is not there. */
static const int16_t behind[32] = { [17] = -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };

/* Up to 16 ways. */
AVX2 static uint32_t *touch_avx2_16(const struct geometry *g, void *state, const struct touch *touches, size_t n,
                                    uint32_t *log)
{
    const __m256i exist = _mm256_loadu_si256((const __m256i *)(ways_of + 16 - g->ways));
    __m256i *sets = state;

    for (size_t i = 0; i < n; i++) {
        __m256i *set = &sets[SET_OF(g, touches[i])], old = _mm256_load_si256(set);
        __m256i tag = _mm256_set1_epi16((short)TAG_OF(g, touches[i]));
        uint32_t found = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi16(old, tag));
        uint64_t lane = _tzcnt_u64(found | 1ull << 32) / 2;
        __m256i stay = _mm256_loadu_si256((const __m256i *)(behind + 16 - lane));
        __m256i moved = _mm256_alignr_epi8(old, _mm256_permute2x128_si256(tag, old, 0x20), 14);

        _mm256_store_si256(set, _mm256_and_si256(_mm256_blendv_epi8(moved, old, stay), exist));
        *log = touches[i].function;
        log += !found;
    }
    return log;
}

/* More than 16: one vector after the other, until the tag is found. */
AVX2 static uint32_t *touch_avx2_wide(const struct geometry *g, void *state, const struct touch *touches, size_t n,
                                      uint32_t *log)
{
    const uint32_t vectors = g->lanes / 16, rest = g->ways - 16 * (vectors - 1);
    const __m256i exist = _mm256_loadu_si256((const __m256i *)(ways_of + 16 - rest));

    for (size_t i = 0; i < n; i++) {
        __m256i *set = (__m256i *)state + (size_t)SET_OF(g, touches[i]) * vectors;
        __m256i tag = _mm256_set1_epi16((short)TAG_OF(g, touches[i])), before = tag;
        uint32_t found = 0;

        for (uint32_t k = 0; k < vectors && !found; k++) {
            __m256i old = _mm256_load_si256(set + k);
            __m256i moved = _mm256_alignr_epi8(old, _mm256_permute2x128_si256(before, old, 0x21), 14);

            found = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi16(old, tag));
            uint64_t lane = _tzcnt_u64(found | 1ull << 32) / 2;
            __m256i stay = _mm256_loadu_si256((const __m256i *)(behind + 16 - lane));

            _mm256_store_si256(set + k, _mm256_blendv_epi8(moved, old, stay));
            before = old;
        }
        set += vectors - 1;
        _mm256_store_si256(set, _mm256_and_si256(_mm256_load_si256(set), exist));
        *log = touches[i].function;
        log += !found;
    }
    return log;
}
#endif

size_t touch_most_state_bytes(const struct replay_cache *cache)
{
    return (size_t)cache->sets * ((cache->ways + 15) / 16 * 16) * sizeof(uint32_t) + 31 + sizeof(uint32_t);
}

touch_fn *touch_choose(struct geometry *g, bool few, bool portable)
{
    touch_fn *chosen = few ? touch_portable16 : touch_portable32;

    g->tag_bytes = few ? 2 : 4;
    g->lanes = g->ways;
    if (g->replacement != LEAST_RECENT)
        chosen = touch_choose_other(g, few, portable);
#ifdef __x86_64__
    else if (few && !portable && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi")) {
        g->lanes = g->ways <= 8 ? 8 : (g->ways + 15) / 16 * 16;
        chosen = g->ways <= 8 ? touch_avx2_8 : g->ways <= 16 ? touch_avx2_16 : touch_avx2_wide;
    }
#endif
    (void)portable;
    g->times_at = ((size_t)g->sets * g->lanes * g->tag_bytes + 3) / 4 * 4;
    g->state_bytes = (g->times_at + (g->replacement == RANDOM ? sizeof(uint32_t) : 0) + 31) / 32 * 32;
    return chosen;
}
