/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a run's accesses to data miss: in the L1D, in the L2 that code shares, and in the TLBs of data.
 *
 * Layouts of code do not move data, so this is one replay of the trace as it was executed, not one a layout. A miss is laid to the block
 * that made the access, which is the last one before it in the trace.
 *
 * First levels know nothing of each other, so each takes a piece's accesses alone, as a list that is made once. What they miss goes
 * on, in the order of the accesses, to the second levels. First levels are warmed by a pass of their own; second ones by one more pass,
 * before which and after which the first ones are as the pass of their own left them. That is what filter.c and hierarchy.c do, too.
 */
#include "replay.h"

#include "places.h"
#include "replacement.h"

#ifndef MOST_KEPT_OF_DATA /* tests have a smaller one */
#define MOST_KEPT_OF_DATA (1u << 22) /* touches a level */
#endif
#define FEW_TAGS UINT16_MAX
#define EVENTS 4 /* misses of the L1D, the L2, the TLBs, the second TLB; each has two counts, of loads and of stores */

enum { L1D_EVENT, L2_EVENT, TLB_EVENT, TLB2_EVENT };

/* The item of its piece that makes a touch, and what it touches: a line of code, or a datum. */
struct origin { uint32_t position, thing; };

struct list { struct touches touches; struct origin *origins; uint64_t capacity; };
struct span { uint64_t start, n; bool made; };

struct first_level {
    struct geometry g;
    touch_fn *touch;
    void *state, *before;
    uint32_t *lines;         /* of each thing: its set in the low bits, its tag above; 0 where it does not go through this cache */
    struct list kept, scratch;
    struct span *of_piece;   /* in `kept` */
    uint64_t *latest, epoch; /* of each set: the last line of the piece at hand */
    uint32_t *log, *log_end; /* numbers of touches in the list at hand */
    uint64_t log_capacity;
    const struct origin *origins; /* of that list */
};

struct deep { uint32_t set, tag; };
struct second_level { const struct replay_cache *cache; uint32_t *tags, times; };

enum { CODE, DATA, TLB, LARGE, STORE, FIRST };
static const int cache_of_first[FIRST] = { DATA_L1I, DATA_L1D, DATA_TLB, DATA_TLB_LARGE, DATA_TLB_STORE };

struct data_side {
    const struct replay_trace *trace;
    const struct replay_data *asked;
    struct first_level first[FIRST];
    struct second_level l2, tlb2;
    uint64_t *code;           /* of block i: lines of code code[i]..code[i + 1) */
    uint64_t n_code, capacity;
    struct deep *code_l2, *data_l2, *data_tlb2;
    uint64_t *code_virtual;
    struct numbers lines;     /* physical */
};

static bool has(const struct data_side *d, int cache)
{
    return d->asked->caches[cache].sets;
}

static struct deep deep_of(const struct replay_cache *cache, uint64_t number, uint32_t tag)
{
    return (struct deep){ ((uint32_t)number & (cache->sets - 1)) * cache->ways, tag };
}

static bool more_code(struct data_side *d)
{
    uint64_t capacity = d->capacity ? 2 * d->capacity : 4096;
    struct deep *deep = realloc(d->code_l2, capacity * sizeof *deep);

    if (!deep)
        return false;
    d->code_l2 = deep;
    uint64_t *virtual = realloc(d->code_virtual, capacity * sizeof *virtual);

    if (!virtual)
        return false;
    d->code_virtual = virtual;
    d->capacity = capacity;
    return true;
}

/* Code is in it for the sake of the L2 alone. */
static bool place_code(struct data_side *d)
{
    const struct replay_trace *t = d->trace;
    uint32_t shift = d->asked->caches[DATA_L1I].line_shift;

    d->code = calloc(t->n_blocks + 1, sizeof *d->code);
    if (!d->code || !more_code(d))
        return false;
    for (uint64_t i = 0; has(d, DATA_L2) && i < t->n_blocks; i++) {
        uint64_t start = t->offsets[i];

        for (uint64_t line = start >> shift; line <= (start + (t->sizes[i] - 1)) >> shift; line++) {
            uint64_t physical = ((line << shift) + t->physical[i]) >> shift;
            uint32_t tag = number_of(&d->lines, physical);

            if (!tag || (d->n_code == d->capacity && !more_code(d)))
                return false;
            d->code_virtual[d->n_code] = line;
            d->code_l2[d->n_code++] = deep_of(&d->asked->caches[DATA_L2], physical, tag);
        }
        d->code[i + 1] = d->n_code;
    }
    return true;
}

/* The TLB that an access is looked up in. */
static int tlb_of(const struct data_side *d, uint64_t i)
{
    if (d->asked->stores[i] && has(d, DATA_TLB_STORE))
        return STORE;
    bool large = d->asked->page_shifts[i] > d->asked->caches[DATA_TLB].line_shift;

    return large && has(d, DATA_TLB_LARGE) ? LARGE : TLB;
}

static uint64_t page_of(const struct data_side *d, uint64_t i)
{
    return d->trace->data_virtual[i] >> d->asked->page_shifts[i];
}

static bool place_data(struct data_side *d)
{
    const struct replay_trace *t = d->trace;
    const struct replay_cache *caches = d->asked->caches;
    struct numbers pages = { 0 };
    bool good = true;

    d->data_l2 = calloc(t->n_data + 1, sizeof *d->data_l2);
    d->data_tlb2 = calloc(t->n_data + 1, sizeof *d->data_tlb2);
    if (!d->data_l2 || !d->data_tlb2)
        return false;
    for (uint64_t i = 0; good && i < t->n_data; i++) {
        uint64_t line = t->data_physical[i] >> caches[DATA_L1D].line_shift, page = page_of(d, i);

        if (has(d, DATA_L2))
            d->data_l2[i] = deep_of(&caches[DATA_L2], line, number_of(&d->lines, line));
        if (has(d, DATA_TLB2))
            d->data_tlb2[i] = deep_of(&caches[DATA_TLB2], page, number_of(&pages, page << 6 | d->asked->page_shifts[i]));
        good = (!has(d, DATA_L2) || d->data_l2[i].tag) && (!has(d, DATA_TLB2) || d->data_tlb2[i].tag);
    }
    numbers_free(&pages);
    return good;
}

/* What tells the contents of a first level's set apart, and in `number` what tells the set; false if the thing does not go through it. */
static bool key_of(const struct data_side *d, int which, uint64_t thing, uint64_t *key, uint64_t *number)
{
    const struct replay_trace *t = d->trace;
    uint32_t shift = d->asked->caches[cache_of_first[which]].line_shift;

    if (which == CODE || which == DATA) {
        *number = which == CODE ? d->code_virtual[thing] : t->data_virtual[thing] >> shift;
        *key = which == CODE ? d->code_l2[thing].tag : t->data_physical[thing] >> shift;
        return true;
    }
    *number = page_of(d, thing);
    *key = *number << 6 | d->asked->page_shifts[thing];
    return tlb_of(d, thing) == which;
}

struct tags { struct numbers keys; uint32_t *tag, *used, capacity; };

static void tags_free(struct tags *tags)
{
    numbers_free(&tags->keys);
    free(tags->tag);
    free(tags->used);
}

/* A tag of a set's own, so that most fit in 16 bits; 0 if memory is short. Indexes are virtual: a line may be in several sets. */
static uint32_t tag_in_set(struct tags *tags, uint32_t sets, uint32_t set, uint64_t key)
{
    uint32_t known = tags->keys.n, id = number_of(&tags->keys, key * sets + set);

    if (id > known && id >= tags->capacity) {
        uint32_t capacity = 2 * id + 1024, *larger = realloc(tags->tag, capacity * sizeof *larger);

        if (!larger)
            return 0;
        tags->tag = larger;
        tags->capacity = capacity;
    }
    if (id > known)
        tags->tag[id] = ++tags->used[set];
    return id ? tags->tag[id] : 0;
}

/* The lines of all things, and the largest tag among them. */
static enum status number_things(struct data_side *d, int which, uint64_t n_things, uint32_t *most)
{
    struct first_level *level = &d->first[which];
    struct tags tags = { .used = calloc(level->g.sets, sizeof(uint32_t)) };
    enum status status = tags.used ? DONE : NO_MEMORY;
    uint64_t key, number;

    for (uint64_t i = 0; i < n_things && status == DONE; i++) {
        if (!key_of(d, which, i, &key, &number))
            continue;
        uint32_t set = (uint32_t)number & (level->g.sets - 1), tag = tag_in_set(&tags, level->g.sets, set, key);

        if (!tag)
            status = NO_MEMORY;
        else if (tag > UINT32_MAX >> level->g.set_bits)
            status = TOO_MANY_LINES;
        level->lines[i] = tag << level->g.set_bits | set;
        *most = tag > *most ? tag : *most;
    }
    tags_free(&tags);
    return status;
}

static enum status first_make(struct data_side *d, int which)
{
    const struct replay_cache *cache = &d->asked->caches[cache_of_first[which]];
    struct first_level *level = &d->first[which];
    uint64_t n_things = which == CODE ? d->n_code : d->trace->n_data;
    uint32_t most = 0;

    if (!cache->sets || (which == CODE && !has(d, DATA_L2)))
        return DONE;
    level->g = (struct geometry){ .sets = cache->sets, .ways = cache->ways, .replacement = cache->replacement };
    level->g.set_bits = (uint32_t)__builtin_ctz(cache->sets);
    level->lines = calloc(n_things + 1, sizeof *level->lines);
    level->latest = calloc(cache->sets, sizeof *level->latest);
    level->of_piece = calloc(d->trace->n_pieces + 1, sizeof *level->of_piece);
    if (!level->lines || !level->latest || !level->of_piece)
        return NO_MEMORY;
    enum status status = number_things(d, which, n_things, &most);

    if (status != DONE)
        return status;
    level->touch = touch_choose(&level->g, most < FEW_TAGS, d->asked->flags & PORTABLE);
    level->state = aligned_alloc(32, level->g.state_bytes + 32);
    level->before = malloc(level->g.state_bytes + 32);
    if (!level->state || !level->before)
        return NO_MEMORY;
    memset(level->state, 0, level->g.state_bytes);
    return DONE;
}

static bool second_make(const struct data_side *d, int cache, struct second_level *level)
{
    level->cache = &d->asked->caches[cache];
    level->tags = calloc((size_t)level->cache->sets * level->cache->ways + 1, sizeof *level->tags);
    return level->tags;
}

static enum status make(struct data_side *d)
{
    enum status status = DONE;

    if (!place_code(d) || !place_data(d) || !second_make(d, DATA_L2, &d->l2) || !second_make(d, DATA_TLB2, &d->tlb2))
        return NO_MEMORY;
    for (int i = 0; i < FIRST && status == DONE; i++)
        status = first_make(d, i);
    return status;
}

/* Drops a line that its set saw last in this piece: it changes nothing there and is a hit. */
static bool append(struct first_level *level, struct list *out, uint32_t thing, uint32_t position)
{
    uint32_t line = level->lines[thing];
    uint64_t *latest = &level->latest[line & (level->g.sets - 1)], now = level->epoch << 32 | line;

    if (!line || *latest == now)
        return true;
    *latest = now;
    if (!touches_reserve(&out->touches, 1))
        return false;
    if (out->touches.n == out->capacity) {
        uint64_t capacity = out->capacity ? 2 * out->capacity : 1024;
        struct origin *larger = realloc(out->origins, capacity * sizeof *larger);

        if (!larger)
            return false;
        out->origins = larger;
        out->capacity = capacity;
    }
    out->origins[out->touches.n] = (struct origin){ position, thing };
    out->touches.all[out->touches.n] = (struct touch){ line, (uint32_t)out->touches.n };
    out->touches.n++;
    return true;
}

static bool append_piece(struct data_side *d, int which, uint32_t piece, struct list *out)
{
    const struct replay_trace *t = d->trace;
    const uint32_t *items = t->items + t->starts[piece];
    uint32_t n = (uint32_t)(t->starts[piece + 1] - t->starts[piece]);
    struct first_level *level = &d->first[which];

    level->epoch++;
    for (uint32_t at = 0; at < n; at++) {
        if ((items[at] & DATA_ITEM) != 0 && which != CODE && !append(level, out, items[at] & ~DATA_ITEM, at))
            return false;
        if ((items[at] & DATA_ITEM) != 0 || which != CODE)
            continue;
        for (uint64_t i = d->code[items[at]]; i < d->code[items[at] + 1]; i++)
            if (!append(level, out, (uint32_t)i, at))
                return false;
    }
    return true;
}

/* Leaves in the level's log what of a piece it misses. */
static bool touch_piece(struct data_side *d, int which, uint32_t piece)
{
    struct first_level *level = &d->first[which];
    struct span *span = &level->of_piece[piece];
    bool keep = span->made || level->kept.touches.n < MOST_KEPT_OF_DATA;
    struct list *list = keep ? &level->kept : &level->scratch;
    struct span here = *span;

    if (!span->made) {
        here.start = list->touches.n = keep ? list->touches.n : 0;
        if (!append_piece(d, which, piece, list))
            return false;
        here.n = list->touches.n - here.start;
        here.made = true;
        if (keep)
            *span = here;
    }
    if (here.n + 1 > level->log_capacity) {
        uint32_t *larger = realloc(level->log, 2 * (here.n + 1) * sizeof *larger);

        if (!larger)
            return false;
        level->log = larger;
        level->log_capacity = 2 * (here.n + 1);
    }
    level->origins = list->origins;
    level->log_end = level->touch(&level->g, level->state, list->touches.all + here.start, here.n, level->log);
    return true;
}

/* Where the replay stands, and where misses go: (n_rows + 1) x CONTEXTS x EVENTS x 2. */
struct place_in { uint64_t executed; uint32_t piece, context; uint64_t *counts; };

/* The row of the block that made an access; n_rows, where none did. Nearly always it is a few items before it. */
static uint64_t row_of(const struct data_side *d, const struct place_in *here, uint32_t position)
{
    const struct replay_trace *t = d->trace;
    uint64_t start = t->starts[here->piece], at = start + position;

    for (uint64_t executed = here->executed;;) {
        while (at-- > start)
            if (!(t->items[at] & DATA_ITEM))
                return t->functions[t->items[at]];
        if (!executed--)
            return d->asked->n_rows;
        start = t->starts[t->sequence[executed]];
        at = t->starts[t->sequence[executed] + 1];
    }
}

static void count(const struct data_side *d, const struct place_in *here, const struct origin *origin, int event, bool deep)
{
    uint64_t row = row_of(d, here, origin->position);
    uint64_t *counts = here->counts + (row * CONTEXTS + here->context) * 2 * EVENTS + (d->asked->stores[origin->thing] != 0);

    counts[2 * event]++;
    if (deep)
        counts[2 * (event + 1)]++;
}

static bool misses_below(struct second_level *level, struct deep deep)
{
    return cache_touch(level->cache, level->tags + deep.set, deep.tag, &level->times) != deep.tag;
}

/* The first levels' misses, in the order of the accesses, on to the second ones. which: n first levels that share one. */
static void go_on(struct data_side *d, const struct place_in *here, const int *which, int n)
{
    const uint32_t *next[FIRST];

    for (int i = 0; i < n; i++)
        next[i] = d->first[which[i]].log;
    for (;;) {
        const struct origin *first = NULL;
        int of = 0;

        for (int i = 0; i < n; i++) {
            const struct first_level *level = &d->first[which[i]];

            if (next[i] < level->log_end && (!first || level->origins[*next[i]].position < first->position)) {
                first = &level->origins[*next[i]];
                of = i;
            }
        }
        if (!first)
            return;
        next[of]++;
        bool deep = false;

        if (which[of] == CODE)
            misses_below(&d->l2, d->code_l2[first->thing]);
        else if (which[of] == DATA)
            deep = has(d, DATA_L2) && misses_below(&d->l2, d->data_l2[first->thing]);
        else
            deep = has(d, DATA_TLB2) && misses_below(&d->tlb2, d->data_tlb2[first->thing]);
        if (here->counts && which[of] != CODE)
            count(d, here, first, which[of] == DATA ? L1D_EVENT : TLB_EVENT, deep);
    }
}

static bool pass(struct data_side *d, bool first_alone, uint64_t *counts)
{
    static const int lines[] = { CODE, DATA }, pages[] = { TLB, LARGE, STORE };
    const struct replay_trace *t = d->trace;

    for (uint64_t i = 0; i < t->n_executed; i++) {
        struct place_in here = { i, t->sequence[i], t->contexts[i], counts };

        for (int which = first_alone ? DATA : CODE; which < FIRST; which++)
            if (d->first[which].touch && !touch_piece(d, which, here.piece))
                return false;
        if (first_alone)
            continue;
        go_on(d, &here, lines, 2);
        go_on(d, &here, pages, 3);
    }
    return true;
}

/* The first levels of data, as the first pass left them. */
static void keep(struct data_side *d, bool back)
{
    for (int i = DATA; i < FIRST; i++) {
        struct first_level *level = &d->first[i];

        if (level->touch)
            memcpy(back ? level->state : level->before, back ? level->before : level->state, level->g.state_bytes);
    }
}

static bool warmed(struct data_side *d)
{
    if (!pass(d, true, NULL))
        return false;
    keep(d, false);
    if (!pass(d, false, NULL))
        return false;
    keep(d, true);
    return true;
}

static void release(struct data_side *d)
{
    for (int i = 0; i < FIRST; i++) {
        struct first_level *level = &d->first[i];
        void *every[] = { level->state, level->before, level->lines, level->of_piece, level->latest, level->log,
                          level->kept.touches.all, level->kept.origins, level->scratch.touches.all, level->scratch.origins };

        for (size_t k = 0; k < sizeof every / sizeof *every; k++)
            free(every[k]);
    }
    numbers_free(&d->lines);
    void *every[] = { d->l2.tags, d->tlb2.tags, d->code, d->code_l2, d->code_virtual, d->data_l2, d->data_tlb2 };

    for (size_t k = 0; k < sizeof every / sizeof *every; k++)
        free(every[k]);
}

int replay_data(const struct replay_trace *trace, const struct replay_data *asked)
{
    struct data_side d = { .trace = trace, .asked = asked };
    enum status status = make(&d);

    if (status == DONE && asked->flags & WARM && !warmed(&d))
        status = NO_MEMORY;
    if (status == DONE && !pass(&d, false, asked->counts))
        status = NO_MEMORY;
    release(&d);
    return (int)status;
}
