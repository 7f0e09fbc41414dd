/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was counted since the last segment goes to the region that is active. */
#include "segment.h"

#include "kinds.h"
#include "listener.h"

struct counting now;
struct block *before_all;

void segment_init(void)
{
    now.block = before_all = block_dummy();
    now.epoch = 1;
}

void segment_touch(struct block *b)
{
    if (b == before_all)
        return;
    b->epoch = now.epoch;
    if (now.n_touched == now.touched_capacity) {
        now.touched_capacity = now.touched_capacity ? 2 * now.touched_capacity : 4096;
        now.touched = must(realloc(now.touched, now.touched_capacity * sizeof *now.touched));
    }
    now.touched[now.n_touched++] = b;
}

static void region_add(struct block *b)
{
    struct region *r = &now.region;

    if (b->origin->in_region)
        return;
    b->origin->in_region = true;
    if (r->n_blocks == r->blocks_capacity) {
        r->blocks_capacity = r->blocks_capacity ? 2 * r->blocks_capacity : 4096;
        r->blocks = must(realloc(r->blocks, r->blocks_capacity * sizeof *r->blocks));
    }
    r->blocks[r->n_blocks++] = b;
}

static void flush_group(struct group *g, uint64_t entered, struct tally *sum)
{
    struct tally t = { entered, g->lost, g->elements, g->mmio };

    if (sum) {
        sum->entered += t.entered - g->flushed.entered;
        sum->lost += t.lost - g->flushed.lost;
        sum->elements += t.elements - g->flushed.elements;
        sum->mmio += t.mmio - g->flushed.mmio;
    }
    g->flushed = t;
}

static void flush(struct block *b, enum context context)
{
    bool wanted = now.region.serial;
    struct origin *o = b->origin;

    if (wanted)
        region_add(b);
    for (uint16_t g = 0; g < o->n_groups; g++) {
        flush_group(&o->groups[g], b->live[g], wanted ? &o->groups[g].sum[context] : NULL);
        if (o->groups[g].kinds)
            kinds_flush(&o->groups[g], context, wanted);
    }
}

static void flush_silent(enum context context)
{
    for (size_t i = 0; i < now.n_silent; i++)
        if (now.silent[i]->live[0] != now.silent[i]->origin->groups[0].flushed.entered)
            flush(now.silent[i], context);
}

static void flush_touched(enum context context)
{
    REPORT(cut, context);
    for (size_t i = 0; i < now.n_touched; i++)
        flush(now.touched[i], context);
    flush_silent(context);
    now.n_touched = 0;
    now.epoch++;
    segment_touch(now.block); /* its later groups belong to the next segment */
}

static void add(struct iteration *sum, enum context context, uint64_t kernel, uint64_t user)
{
    switch (context) {
    case OWN: sum->own_kernel += kernel; sum->own_user += user; break;
    case INTERRUPTS: sum->interrupts += kernel + user; break;
    default: sum->other += kernel + user;
    }
}

void segment_account(enum context context, uint64_t rest)
{
    uint64_t reached[2] = { now.run[0], now.run[1] };

    reached[now.block->user] -= rest;
    uint64_t kernel = reached[0] - now.run_flushed[0], user = reached[1] - now.run_flushed[1];

    now.run_flushed[0] = reached[0];
    now.run_flushed[1] = reached[1];
    add(&now.region.sum, context, kernel, user);
    if (n_cpus == 1)
        return;
    add(&now.region.by_cpu[now.cpu], context, kernel, user);
    if (context == OTHER && now.idles)
        now.region.idle_by_cpu[now.cpu] += kernel + user;
}

void segment_close(enum context context)
{
    segment_account(context, 0);
    flush_touched(context);
}

void count_returns(const struct block *b)
{
    if (n_cpus > 1)
        return; /* each block has a callback */
    flush_silent(INTERRUPTS);
    now.returned = now.run[0] + b->insns;
}

void segment_close_interrupt(enum context resumed)
{
    segment_account(INTERRUPTS, now.returned ? now.run[0] - now.returned : 0);
    if (now.returned)
        flush_silent(resumed);
    now.returned = 0;
    flush_touched(INTERRUPTS);
}

void segment_close_at(enum context context, const struct site *site)
{
    segment_account(context, insns_from(site->block, site->group));
    flush_touched(context);
}

void segment_close_after(enum context context, const struct site *site)
{
    segment_account(context, insns_from(site->block, site->group + 1u));
    flush_touched(context);
}

void count_lose(struct block *b, unsigned group)
{
    if (b->epoch != now.epoch && !is_silent(b))
        segment_touch(b);
    b->origin->groups[group].lost++;
    now.run[b->user]--;
    kinds_take_back(b, group, 1);
    REPORT(lost, b, group, 1);
}

void count_find(struct block *b, unsigned group)
{
    if (b->epoch != now.epoch)
        segment_touch(b);
    b->origin->groups[group].lost--;
    now.run[b->user]++;
    kinds_take_back(b, group, -1);
    REPORT(lost, b, group, -1);
}
