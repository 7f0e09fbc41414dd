/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A front end's tables, and where the steps of a plan lie under one layout. */
#include "frontend_state.h"

static bool hold(struct held *held, const struct replay_cache *cache)
{
    held->cache = cache;
    held->one_vector = cache->replacement == LEAST_RECENT && cache->ways <= 8;
    held->stride = held->one_vector ? 8 : cache->ways;
    held->tags = calloc((size_t)cache->sets * held->stride + 1, sizeof *held->tags);
    return held->tags;
}

static void empty(struct held *held)
{
    memset(held->tags, 0, (size_t)held->cache->sets * held->stride * sizeof *held->tags);
    held->times = 0;
}

static uint32_t power(uint32_t base, uint32_t exponent)
{
    uint32_t found = 1;

    while (exponent--)
        found *= base;
    return found;
}

/* Lanes of tables that are not there keep a history of one branch, and are not asked. */
static void make_lanes(struct front *f)
{
    const struct frontend_predictor *parts[] = { &f->cpu->conditional, &f->cpu->indirect };
    const uint32_t first[] = { 0, CONDITIONAL_TABLES };
    uint32_t length[LANES], leaving[LANES], offset[LANES] = { 0 };

    for (uint32_t lane = 0; lane < LANES; lane++)
        length[lane] = 1;
    for (uint32_t part = 0; part < 2; part++)
        for (uint32_t table = 0; table < parts[part]->n_tables; table++) {
            length[first[part] + table] = parts[part]->histories[table];
            offset[first[part] + table] = table * parts[part]->entries;
        }
    for (uint32_t lane = 0; lane < LANES; lane++)
        leaving[lane] = power(FACTOR, length[lane]);
    memcpy(f->history.length, length, sizeof length);
    memcpy(f->history.leaving, leaving, sizeof leaving);
    memcpy(f->history.offset, offset, sizeof offset);
}

/* Where nothing is known of windows they are lines. */
static uint32_t window_shift(const struct frontend_cpu *cpu)
{
    return cpu->window_shift ? cpu->window_shift : cpu->l1i.line_shift;
}

static size_t tagged(const struct frontend_predictor *p)
{
    return (size_t)p->entries * p->n_tables + 1;
}

enum status front_init(struct front *f, const struct frontend_plan *plan, const struct frontend_job *job)
{
    const struct frontend_cpu *cpu = &job->cpu;

    f->plan = plan;
    f->job = job;
    f->cpu = cpu;
    f->spots = aligned_alloc(64, ((size_t)plan->n_steps + 1) * sizeof *f->spots);
    f->conditional.base = malloc(cpu->conditional.base_entries + 1);
    f->conditional.entries = malloc(tagged(&cpu->conditional) * sizeof(uint32_t));
    f->indirect.base = malloc((cpu->indirect.base_entries + 1) * sizeof(uint32_t));
    f->indirect.entries = malloc(tagged(&cpu->indirect) * sizeof(uint32_t));
    f->indirect.targets = malloc(tagged(&cpu->indirect) * sizeof(uint32_t));
    bool caches = hold(&f->l1i, &cpu->l1i) && hold(&f->itlb[0], &cpu->itlb[0]) && hold(&f->itlb[1], &cpu->itlb[1]) &&
        hold(&f->btb[0], &cpu->btb[0]) && hold(&f->btb[1], &cpu->btb[1]) && hold(&f->op_cache, &cpu->op_cache);

    make_lanes(f);
    uint32_t window = window_shift(cpu), line = cpu->l1i.line_shift;

    f->line_mask = window < line ? (1u << (line - window)) - 1 : 0;
    f->window_mask = window > line ? (1u << (window - line)) - 1 : 0;
    return caches && f->spots && f->conditional.base && f->conditional.entries && f->indirect.base && f->indirect.entries &&
        f->indirect.targets ? DONE : NO_MEMORY;
}

void front_free(struct front *f)
{
    struct held *caches[] = { &f->l1i, &f->itlb[0], &f->itlb[1], &f->btb[0], &f->btb[1], &f->op_cache };

    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++)
        free(caches[i]->tags);
    free(f->spots);
    free(f->places);
    free(f->conditional.base);
    free(f->conditional.entries);
    free(f->indirect.base);
    free(f->indirect.entries);
    free(f->indirect.targets);
    numbers_free(&f->lines);
    numbers_free(&f->pages);
    numbers_free(&f->windows_of_ops);
    numbers_free(&f->branches);
}

/* Appends a line, page or window; false if memory is short. */
static bool add_place(struct front *f, struct numbers *numbers, uint64_t key, uint32_t set, uint32_t low)
{
    uint32_t tag = number_of(numbers, key);

    if (f->n_places == f->capacity) {
        uint64_t capacity = f->capacity ? 2 * f->capacity : 4096;
        struct place_in *larger = realloc(f->places, capacity * sizeof *larger);

        if (!larger)
            return false;
        f->places = larger;
        f->capacity = capacity;
    }
    f->places[f->n_places++] = (struct place_in){ set, tag, low };
    return tag;
}

/* The lines of a cache that code from `start` to `last` touches; how many there are, or NONE if memory is short. */
static uint32_t add_lines(struct front *f, struct numbers *numbers, const struct replay_cache *cache, uint64_t start, uint64_t last)
{
    uint64_t line = start >> cache->line_shift, end = last >> cache->line_shift;

    if (!cache->sets)
        return 0;
    for (uint64_t i = line; i <= end; i++)
        if (!add_place(f, numbers, i, (uint32_t)i & (cache->sets - 1), (uint32_t)i))
            return NONE;
    return (uint32_t)(end - line + 1);
}

static uint32_t add_pages(struct front *f, bool small, uint64_t start, uint64_t last)
{
    const struct replay_cache *cache = &f->cpu->itlb[small];
    uint64_t page = start >> cache->line_shift, end = last >> cache->line_shift;

    if (!cache->sets)
        return 0;
    for (uint64_t i = page; i <= end; i++)
        if (!add_place(f, &f->pages, i << 1 | small, (uint32_t)i & (cache->sets - 1), small))
            return NONE;
    return (uint32_t)(end - page + 1);
}

static bool place_step(struct front *f, struct spot *spot, const struct step *step, uint64_t start)
{
    const struct frontend_cpu *cpu = f->cpu;
    uint64_t last = start + step->bytes - 1;
    uint32_t shift = window_shift(cpu);

    *spot = (struct spot){
        .start = (uint32_t)start, .back = (uint32_t)last + 1, .first = (uint32_t)f->n_places,
        .branch_mix = mix32((uint32_t)last), .start_mix = mix32((uint32_t)start ^ 0x55555555u) * 3,
        .window = (uint32_t)(start >> shift), .windows = (uint32_t)((last >> shift) - (start >> shift) + 1),
        .time = step->insns * cpu->insn_time, .branch_tag = number_of(&f->branches, last),
        .function = step->function, .kind = step->kind,
    };
    for (int level = 0; level < 2; level++)
        spot->branch_sets[level] = cpu->btb[level].sets ? (uint32_t)(last >> cpu->btb[level].line_shift) & (cpu->btb[level].sets - 1) : 0;
    spot->n_lines = add_lines(f, &f->lines, &cpu->l1i, start, last);
    spot->n_pages = spot->n_lines == NONE ? NONE : add_pages(f, f->job->small[step->function], start, last);
    spot->n_ops = spot->n_pages == NONE ? NONE : add_lines(f, &f->windows_of_ops, &cpu->op_cache, start, last);
    return spot->n_ops != NONE && spot->branch_tag && f->n_places < NONE;
}

/* Counters start between taken and not taken. */
static void forget(struct front *f)
{
    const struct frontend_cpu *cpu = f->cpu;

    memset(f->conditional.base, 1, cpu->conditional.base_entries);
    memset(f->conditional.entries, 0, tagged(&cpu->conditional) * sizeof(uint32_t));
    memset(f->indirect.base, 0, cpu->indirect.base_entries * sizeof(uint32_t));
    memset(f->indirect.entries, 0, tagged(&cpu->indirect) * sizeof(uint32_t));
    memset(f->indirect.targets, 0, tagged(&cpu->indirect) * sizeof(uint32_t));
    f->conditional.use_other = 8;
    f->conditional.chance = f->conditional.since = f->indirect.chance = 0;
    memset(f->history.ring, 0, sizeof f->history.ring);
    memset(f->history.sum, 0, sizeof f->history.sum);
    f->history.at = 0;
    memset(f->returns, 0, sizeof f->returns);
    memset(f->queue, 0, sizeof f->queue);
    memset(f->consumed_at, 0, sizeof f->consumed_at);
    f->fetched = f->executed = f->supplied = f->consumed = f->last_asked = 0;
    f->waited = 0;
    f->oldest = f->top = f->last_line = f->last_low = f->last_page = f->last_op = f->last_window = 0;
    f->straight = false;
    empty(&f->l1i);
    empty(&f->op_cache);
    for (int i = 0; i < 2; i++) {
        empty(&f->itlb[i]);
        empty(&f->btb[i]);
    }
}

enum status front_place(struct front *f, const uint64_t *layout)
{
    const struct frontend_plan *plan = f->plan;

    numbers_clear(&f->lines);
    numbers_clear(&f->pages);
    numbers_clear(&f->windows_of_ops);
    numbers_clear(&f->branches);
    f->n_places = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (!place_step(f, &f->spots[i], &plan->steps[i], layout[plan->steps[i].function] + plan->steps[i].offset))
            return NO_MEMORY;
    forget(f);
    return DONE;
}
