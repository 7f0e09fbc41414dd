/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inner loop of a front end, compiled twice: NAME(x) and TARGET say for what, VECTORS_HERE whether by AVX2.
 *
 * The conditional predictor is of the TAGE family (A. Seznec and P. Michaud, A case for (partially) tagged geometric history length
 * branch prediction, JILP 2006), the indirect one likewise (A. Seznec, A 64-Kbytes ITTAGE indirect branch predictor, 2011), with the path
 * of taken branches as history, as Intel's and AMD's cores have it.
 */

static TARGET ALWAYS inline void NAME(count)(struct front *f, enum event event, uint32_t context, uint32_t function, uint64_t n)
{
    f->total[event * CONTEXTS + context] += n;
    if (f->by_function)
        f->by_function[event * f->job->n_functions + function] += n;
}

/* Whether it was not there; then it is. */
static TARGET ALWAYS inline bool NAME(misses)(struct held *held, uint32_t set, uint32_t tag)
{
    uint32_t *ways = held->tags + (size_t)set * held->stride;

    if (ways[0] == tag)
        return false;
#ifdef VECTORS_HERE
    if (held->one_vector) {
        __m256i old = _mm256_loadu_si256((__m256i *)ways), now = _mm256_set1_epi32((int)tag);
        uint32_t found = (uint32_t)_mm256_movemask_ps((__m256)_mm256_cmpeq_epi32(old, now));
        uint32_t way = found ? (uint32_t)__builtin_ctz(found) : held->cache->ways - 1;
        __m256i moved = _mm256_permutevar8x32_epi32(old, _mm256_loadu_si256((const __m256i *)(moves + 8 * way)));

        _mm256_storeu_si256((__m256i *)ways, _mm256_blend_epi32(moved, now, 1));
        return !found;
    }
#endif
    return cache_touch(held->cache, ways, tag, &held->times) != tag;
}

/* A branch that was taken, and where to, becomes the latest of all histories. */
static TARGET ALWAYS inline void NAME(remember)(struct history *h, uint32_t mark)
{
    uint32_t at = h->at = (h->at + 1) % HISTORY;

    for (int v = 0; v < VECTORS; v++) {
        vector past = (at - h->length[v]) % HISTORY, oldest;

#ifdef VECTORS_HERE
        oldest = (vector)_mm256_i32gather_epi32((const int *)h->ring, (__m256i)past, 4);
#else
        for (int i = 0; i < 8; i++)
            oldest[i] = h->ring[past[i]];
#endif
        h->sum[v] = h->sum[v] * FACTOR + mark - h->leaving[v] * oldest;
    }
    h->ring[at] = mark;
}

static TARGET ALWAYS inline void NAME(look_up)(const struct history *h, const struct frontend_predictor *p, int from, int to, uint32_t mix,
                                        struct lookup *found)
{
    uint32_t bits = (uint32_t)__builtin_ctz(p->entries), mask = (1u << p->tag_bits) - 1;

    for (int v = from; v < to; v++) {
        vector spread = (h->sum[v] ^ mix) * SPREAD;

        found->want[v] = (spread & mask) | VALID;
        found->slot[v] = ((spread >> 1) >> (31 - bits)) + h->offset[v];
    }
}

/* A bit for each lane from `first` on whose entry has the tag. */
static TARGET ALWAYS inline uint32_t NAME(found)(const uint32_t *entries, const struct lookup *lookup, uint32_t first, uint32_t n)
{
    uint32_t bits = 0;

#ifdef VECTORS_HERE
    if (!first) {
        for (uint32_t v = 0; 8 * v < n; v++) {
            vector here = (vector)_mm256_i32gather_epi32((const int *)entries, (__m256i)lookup->slot[v], 4);
            __m256i same = (__m256i)((here & TAG_BITS) == lookup->want[v]);

            bits |= (uint32_t)_mm256_movemask_ps((__m256)same) << 8 * v;
        }
        return bits & ((1u << n) - 1);
    }
#endif
    for (uint32_t i = 0; i < n; i++)
        bits |= (uint32_t)((entries[lookup->slot[(first + i) / 8][(first + i) % 8]] & TAG_BITS) ==
                           lookup->want[(first + i) / 8][(first + i) % 8]) << i;
    return bits;
}

static inline uint32_t NAME(next_chance)(uint32_t *chance)
{
    *chance = *chance * 1664525u + 1013904223u;
    return *chance >> 31;
}

#define SLOT(lookup, lane) ((lookup).slot[(lane) / 8][(lane) % 8])
#define WANT(lookup, lane) ((lookup).want[(lane) / 8][(lane) % 8])

/* After a misprediction: an entry in a table of longer history than that which predicted (-1: the base), where one is of no use; else all
 * become less useful. Returns where it is, or NONE. */
static TARGET uint32_t NAME(new_entry)(uint32_t *entries, const struct lookup *lookup, uint32_t first, uint32_t n, int provider,
                                       uint32_t *chance, uint32_t counter)
{
    uint32_t from = (uint32_t)(provider + 1);

    if (from >= n)
        return NONE;
    if (NAME(next_chance)(chance) && from + 1 < n)
        from++;
    for (uint32_t i = from; i < n; i++) {
        uint32_t *entry = &entries[SLOT(*lookup, first + i)];

        if (!(*entry >> USEFUL)) {
            *entry = WANT(*lookup, first + i) | counter << COUNTER;
            return SLOT(*lookup, first + i);
        }
    }
    for (uint32_t i = from; i < n; i++)
        entries[SLOT(*lookup, first + i)] -= 1u << USEFUL;
    return NONE;
}

static TARGET __attribute__((noinline)) void NAME(age)(struct conditional *c, size_t n)
{
    c->since = 0;
    for (size_t i = 0; i < n; i++)
        c->entries[i] = (c->entries[i] & ((1u << USEFUL) - 1)) | (c->entries[i] >> (USEFUL + 1)) << USEFUL;
}

/* Whether the prediction was wrong. */
static TARGET ALWAYS inline bool NAME(conditional)(struct front *f, uint32_t mix, bool taken)
{
    const struct frontend_predictor *p = &f->cpu->conditional;
    struct conditional *c = &f->conditional;
    struct lookup lookup;

    if (!p->base_entries)
        return false;
    NAME(look_up)(&f->history, p, 0, p->n_tables > 8 ? 2 : 1, mix, &lookup);
    uint32_t found = NAME(found)(c->entries, &lookup, 0, p->n_tables);
    uint8_t *base = &c->base[mix & (p->base_entries - 1)];
    bool other = *base >= 2, guess = other;
    int provider = -1;

    if (++c->since == AGE_AFTER)
        NAME(age)(c, (size_t)p->entries * p->n_tables);
    if (found) {
        provider = 31 - __builtin_clz(found);
        uint32_t rest = found ^ 1u << provider, *entry = &c->entries[SLOT(lookup, provider)];
        uint32_t counter = *entry >> COUNTER & 7, useful = *entry >> USEFUL;
        bool here = counter >= 4, is_new = (counter == 3 || counter == 4) && !useful;

        if (rest)
            other = c->entries[SLOT(lookup, 31 - __builtin_clz(rest))] >> COUNTER & 4;
        guess = is_new && c->use_other >= 8 ? other : here;
        if (is_new && other != here)
            c->use_other += other == taken ? c->use_other < 15 : -(uint32_t)(c->use_other > 0);
        counter += taken ? counter < 7 : -(uint32_t)(counter > 0);
        if (other != here)
            useful += here == taken ? useful < 3 : -(uint32_t)(useful > 0);
        *entry = (*entry & TAG_BITS) | counter << COUNTER | useful << USEFUL;
    } else {
        *base = (uint8_t)(*base + (taken ? *base < 3 : -(*base > 0)));
    }
    if (guess == taken)
        return false;
    NAME(new_entry)(c->entries, &lookup, 0, p->n_tables, provider, &c->chance, taken ? 4 : 3);
    return true;
}

static TARGET ALWAYS inline bool NAME(indirect)(struct front *f, uint32_t mix, uint32_t target)
{
    const struct frontend_predictor *p = &f->cpu->indirect;
    struct indirect *d = &f->indirect;
    struct lookup lookup;

    if (!p->base_entries)
        return false;
    NAME(look_up)(&f->history, p, 1, 2, mix, &lookup);
    uint32_t found = NAME(found)(d->entries, &lookup, CONDITIONAL_TABLES, p->n_tables);
    uint32_t *base = &d->base[mix & (p->base_entries - 1)], other = *base, guess = other;
    int provider = -1;

    if (found) {
        provider = 31 - __builtin_clz(found);
        uint32_t rest = found ^ 1u << provider, slot = SLOT(lookup, CONDITIONAL_TABLES + provider), *entry = &d->entries[slot];
        uint32_t sure = *entry >> COUNTER & 7, useful = *entry >> USEFUL, here = d->targets[slot];

        if (rest)
            other = d->targets[SLOT(lookup, CONDITIONAL_TABLES + 31 - __builtin_clz(rest))];
        guess = sure ? here : other;
        if (here != target && !sure)
            d->targets[slot] = target;
        sure += here == target ? sure < 3 : -(uint32_t)(sure > 0);
        if (other != here && (here == target || other == target))
            useful = here == target;
        *entry = (*entry & TAG_BITS) | sure << COUNTER | useful << USEFUL;
    } else {
        *base = target;
    }
    if (guess == target)
        return false;
    uint32_t slot = NAME(new_entry)(d->entries, &lookup, CONDITIONAL_TABLES, p->n_tables, provider, &d->chance, 0);

    if (slot != NONE)
        d->targets[slot] = target;
    return true;
}

static TARGET ALWAYS inline void NAME(redirect)(struct front *f)
{
    f->fetched = f->executed;
    f->supplied = f->consumed;
}

/* Whether the branch is known, in the nearest level, in the second one, or not at all. */
static TARGET ALWAYS inline void NAME(find_branch)(struct front *f, const struct spot *from, uint32_t context)
{
    if (!f->cpu->btb[0].sets || !NAME(misses)(&f->btb[0], from->branch_sets[0], from->branch_tag))
        return;
    if (f->cpu->btb[1].sets && !NAME(misses)(&f->btb[1], from->branch_sets[1], from->branch_tag)) {
        NAME(count)(f, EVENT_BTB_FIRST, context, from->function, 1);
        f->fetched += f->cpu->second_btb_time;
        f->supplied += f->cpu->delivery_time;
        return;
    }
    NAME(count)(f, EVENT_BTB, context, from->function, 1);
    NAME(redirect)(f);
}

static TARGET ALWAYS inline bool NAME(returned_elsewhere)(struct front *f, uint32_t target)
{
    uint32_t n = f->cpu->returns;

    if (!n)
        return false;
    uint32_t guess = f->returns[f->top];

    f->top = f->top ? f->top - 1 : n - 1;
    return guess != target;
}

static TARGET ALWAYS inline void NAME(call)(struct front *f, uint32_t back)
{
    if (!f->cpu->returns)
        return;
    f->top = f->top + 1 < f->cpu->returns ? f->top + 1 : 0;
    f->returns[f->top] = back;
}

/* The branch at the end of a step. */
static TARGET ALWAYS inline void NAME(branch)(struct front *f, const struct spot *from, const struct spot *to, bool taken, uint32_t context)
{
    enum event event = EVENT_CONDITIONAL;
    bool wrong = false;

    switch (from->kind) {
    case JUMP_CONDITIONAL: wrong = NAME(conditional)(f, from->branch_mix, taken); break;
    case JUMP_RETURN:
        event = EVENT_RETURN;
        wrong = taken && NAME(returned_elsewhere)(f, to->start);
        break;
    case JUMP_INDIRECT: case JUMP_INDIRECT_CALL:
        event = EVENT_INDIRECT;
        wrong = taken && NAME(indirect)(f, from->branch_mix, to->start);
        break;
    }
    if (wrong)
        NAME(count)(f, event, context, from->function, 1);
    if (taken) {
        if (from->kind == JUMP_CALL || from->kind == JUMP_INDIRECT_CALL)
            NAME(call)(f, from->back);
        NAME(find_branch)(f, from, context);
        NAME(remember)(&f->history, from->branch_mix + to->start_mix);
    }
    if (wrong)
        NAME(redirect)(f);
}

/* A line is asked for when it is predicted, or by the one before it. What is left of its latency when it is needed is exposed. */
static TARGET ALWAYS inline void NAME(fetch_line)(struct front *f, const struct place_in *line, uint32_t function, uint32_t context)
{
    if (line->tag == f->last_line)
        return;
    uint64_t asked = f->cpu->ahead ? f->fetched : f->executed;

    if (NAME(misses)(&f->l1i, line->set, line->tag)) {
        bool next = f->cpu->next_line && f->last_line && line->low == f->last_low + 1;
        uint64_t since = next && f->last_asked < asked ? f->last_asked : asked, ready = since + f->cpu->miss_time;

        NAME(count)(f, EVENT_L1I, context, function, 1);
        if (ready > f->executed) {
            NAME(count)(f, EVENT_EXPOSED, context, function, (ready - f->executed + 8) / 16);
            f->executed = ready;
        }
    }
    f->last_line = line->tag;
    f->last_low = line->low;
    f->last_asked = asked;
}

/* The lines of a step's k-th window that were not in the one before it. */
static TARGET ALWAYS inline const struct place_in *NAME(fetch_window)(struct front *f, const struct spot *s, uint32_t k,
                                                                const struct place_in *line, uint32_t context)
{
    const struct place_in *end = f->places + s->first + s->n_lines;

    if (k && (s->window + k) & f->line_mask)
        return line;
    do
        NAME(fetch_line)(f, line++, s->function, context);
    while (line < end && line->low & f->window_mask);
    return line;
}

/* A window as it would be supplied and consumed if no line ever missed: what execution waits for is the pace of windows and branches alone. */
static TARGET ALWAYS inline void NAME(supply)(struct front *f, const struct spot *s, bool is_new, uint64_t time, uint32_t context)
{
    if (!f->cpu->delivery_time)
        return;
    if (!is_new) {
        f->consumed += time;
        return;
    }
    uint64_t *slot = &f->consumed_at[f->oldest];

    f->supplied = f->supplied > *slot ? f->supplied : *slot;
    if (f->supplied > f->consumed) {
        f->waited += (uint32_t)(f->supplied - f->consumed);
        NAME(count)(f, EVENT_WAITS, context, s->function, f->waited / 16); /* what is left of a cycle counts with the next wait */
        f->waited %= 16;
        f->consumed = f->supplied;
    }
    f->consumed += time;
    f->supplied += f->cpu->delivery_time;
    *slot = f->consumed;
}

/* The step's windows, each predicted, fetched and executed. One is predicted when there is room in the queue: when as many windows before it
 * as that holds were executed.
 */
static TARGET ALWAYS inline void NAME(fetch)(struct front *f, const struct spot *s, bool shared, uint32_t context)
{
    const struct place_in *line = f->places + s->first;
    uint32_t n = s->windows, ahead = f->cpu->ahead, share = n > 1 ? s->time / n : s->time;

    for (uint32_t k = 0; k < n; k++) {
        bool is_new = ahead && (k || !shared);

        if (is_new) {
            f->fetched = f->fetched > f->queue[f->oldest] ? f->fetched : f->queue[f->oldest];
            f->executed = f->executed > f->fetched ? f->executed : f->fetched;
        }
        line = NAME(fetch_window)(f, s, k, line, context);
        uint64_t time = k + 1 < n ? share : s->time - share * k;

        f->executed += time;
        NAME(supply)(f, s, is_new, time, context);
        if (is_new) {
            f->fetched += f->cpu->window_time;
            f->queue[f->oldest] = f->executed;
            f->oldest = f->oldest + 1 < ahead ? f->oldest + 1 : 0;
        }
    }
}

static TARGET ALWAYS inline void NAME(execute)(struct front *f, const struct spot *s, uint32_t context)
{
    bool shared = f->straight && f->last_window == s->window;

    f->last_window = s->window + s->windows - 1;
    if (f->cpu->window_shift && s->windows - shared)
        NAME(count)(f, EVENT_WINDOWS, context, s->function, s->windows - shared);
    NAME(fetch)(f, s, shared, context);
    for (uint32_t i = 0; i < s->n_pages; i++) {
        const struct place_in *page = &f->places[s->first + s->n_lines + i];

        if (page->tag != f->last_page && NAME(misses)(&f->itlb[page->low], page->set, page->tag))
            NAME(count)(f, EVENT_ITLB, context, s->function, 1);
        f->last_page = page->tag;
    }
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const struct place_in *op = &f->places[s->first + s->n_lines + s->n_pages + i];

        if (op->tag != f->last_op && NAME(misses)(&f->op_cache, op->set, op->tag))
            NAME(count)(f, EVENT_OP_CACHE, context, s->function, 1);
        f->last_op = op->tag;
    }
}

static TARGET ALWAYS inline void NAME(go_on)(struct front *f, uint32_t from, uint32_t to, uint32_t outcome, uint32_t context)
{
    const struct spot *spots = f->spots;

    f->straight = outcome == STRAIGHT;
    if (outcome == AWAY)
        NAME(redirect)(f);
    else if (spots[from].kind != JUMP_NONE)
        NAME(branch)(f, &spots[from], &spots[to], outcome == TAKEN, context);
}

/* The step that follows the end of the piece at hand, or NONE. */
static TARGET uint32_t NAME(after_piece)(const struct frontend_plan *plan, uint64_t i, uint64_t *resumed, bool *entered)
{
    uint32_t context = plan->contexts[i];

    *entered = false;
    for (uint64_t k = i + 1; k < plan->n_executed; k++) {
        uint32_t piece = plan->sequence[k];

        if (plan->starts[piece] == plan->starts[piece + 1])
            continue;
        *entered = !is_branch(context, plan->contexts[k]);
        return *entered ? plan->resumed[(*resumed)++] : STEP(plan->items[plan->starts[piece]]);
    }
    return NONE;
}

TARGET void NAME(front_walk)(struct front *f)
{
    const struct frontend_plan *plan = f->plan;
    uint64_t resumed = 0;

    for (uint64_t i = 0; i < plan->n_executed; i++) {
        uint32_t piece = plan->sequence[i], context = plan->contexts[i];
        const uint32_t *item = plan->items + plan->starts[piece], *end = plan->items + plan->starts[piece + 1];
        bool entered;

        if (item == end)
            continue;
        for (; item + 1 < end; item++) {
            NAME(execute)(f, &f->spots[STEP(*item)], context);
            NAME(go_on)(f, STEP(*item), STEP(item[1]), OUTCOME(*item), context);
        }
        uint32_t last = STEP(*item), next = NAME(after_piece)(plan, i, &resumed, &entered);

        NAME(execute)(f, &f->spots[last], context);
        NAME(go_on)(f, last, next, next == NONE ? AWAY : frontend_outcome(plan, last, next), context);
        if (entered) { /* by an interrupt, which fetches again */
            NAME(redirect)(f);
            f->straight = false;
        }
    }
}
