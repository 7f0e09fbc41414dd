/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is charged to which node: the callback of blocks, and where a block is not what it was thought to be when it was entered.
 *
 * Whatever moves a group's counters is put down here at the same time or before the segment ends, so that nodes add up to groups.
 */
#include "calls.h"

#include "follow.h"
#include "frames.h"
#include "listener.h"
#include "nodes.h"
#include "programs.h"
#include "trace.h"

bool calls_wanted;

static uint8_t ending_of(const struct block *b)
{
    const struct insn_facts *last = &b->origin->groups[b->origin->n_groups - 1].last;

    if (b->user && !calls.all)
        return ENDS_OTHERWISE;
    return last->calls_function ? ENDS_CALL : last->returns ? ENDS_RETURN : ENDS_OTHERWISE;
}

/* A repeated string operation of the kernel goes on as a block of its own, which has no callback. */
static bool goes_on_silently(const struct block *b)
{
    return !b->user && b->origin->groups[b->origin->n_groups - 1].last.repeats;
}

void *calls_place(struct block *b)
{
    struct origin *o = b->origin;
    struct link *l = o->link;

    if (l)
        return l;
    l = o->link = zalloc(1, sizeof *l);
    l->block = b;
    l->user = b->user;
    l->ends = ending_of(b);
    l->settles = goes_on_silently(b);
    for (uint16_t g = 0; g < o->n_groups; g++)
        l->settles |= o->groups[g].last.is_string || o->groups[g].last.optional;
    return l;
}

bool calls_wants_slot(const struct block *b)
{
    return calls_wanted && b->user && calls.arch->returns_by_stack && ending_of(b) != ENDS_OTHERWISE;
}

void calls_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *is_call)
{
    (void)vcpu;
    if (qemu_plugin_mem_is_store(info) == (bool)is_call)
        calls.slot = vaddr;
}

static struct cell *cell_for(struct block *b)
{
    return calls.cell && calls.cell->block == b ? calls.cell : cell_of(follow_node_of(b), b);
}

static void settle_silent(struct block *silent)
{
    struct group *g = &silent->origin->groups[0];
    uint64_t entered = silent->live[0] - g->told_entered, elements = g->elements - g->told_elements;

    g->told_entered += entered;
    g->told_elements += elements;
    if (!calls.node || !(entered | elements))
        return;
    struct cell *c = cell_of(calls.node, silent);

    c->n += entered;
    if (elements)
        extra_of(c, 0)->waiting.elements += elements;
}

/* What string operations without a callback have done belongs to the node under way. */
static void settle_all_silent(void)
{
    for (size_t i = 0; i < now.n_silent; i++)
        settle_silent(now.silent[i]);
}

static void find_silent(struct link *l)
{
    uint64_t vaddr = l->block->origin->groups[l->block->origin->n_groups - 1].last_vaddr;

    for (size_t i = 0; i < now.n_silent; i++)
        if (now.silent[i]->origin->vaddr == vaddr)
            l->silent = now.silent[i];
}

/* What was counted of the block without a callback, and since. */
static void settle(struct link *l)
{
    struct origin *o = l->block->origin;

    for (uint16_t i = 0; i < o->n_groups; i++) {
        struct group *g = &o->groups[i];
        uint64_t elements = g->elements - g->told_elements;

        g->told_elements += elements;
        if (elements && calls.cell)
            extra_of(calls.cell, i)->waiting.elements += elements;
    }
    if (!goes_on_silently(l->block))
        return;
    if (!l->silent)
        find_silent(l);
    if (l->silent)
        settle_silent(l->silent);
}

/* A string operation that is a block of its own from its first pass on, since something jumps to it. */
static void find_before(struct link *l)
{
    for (; l->n_silent < now.n_silent; l->n_silent++)
        if (now.silent[l->n_silent]->origin->groups[0].end_vaddr == l->block->origin->vaddr)
            l->before = now.silent[l->n_silent];
}

static __attribute__((noinline)) struct cell *find_cell(struct link *l)
{
    if (l->key == calls.key)
        return l->cell;
    l->cell = cell_of(calls.node, l->block);
    l->key = l->cell->node == calls.node ? calls.key : 0;
    return l->cell;
}

static inline void charge(struct link *l)
{
    struct cell *before = calls.cell, *c = before ? before->next : NULL;

    if (__builtin_expect(!c || c->block != l->block || c->node != calls.node, 0)) {
        c = find_cell(l);
        if (before)
            before->next = c;
    }
    if (__builtin_expect(c->epoch != nodes_epoch, 0))
        cell_touch(c);
    c->n++;
    calls.cell = c;
}

void count_called_block(unsigned int vcpu, void *data)
{
    struct link *l = data, *last = calls.last;

    if (__builtin_expect(last->settles, 0))
        settle(last);
    count_entry(vcpu, l->block);
    if (last->ends | (last->user ^ l->user) | calls.changed)
        follow(l->block, last);
    if (__builtin_expect(l->n_silent != now.n_silent, 0))
        find_before(l);
    if (__builtin_expect(l->before != NULL, 0))
        settle_silent(l->before);
    calls.last = l;
    if (calls.node)
        charge(l);
    if (trace_piece.recording)
        trace_block(l->block);
}

static void move_groups(struct cell *c, const struct block *b, unsigned group, int times)
{
    for (; group < b->origin->n_groups; group++)
        extra_of(c, group)->waiting.entered += (uint64_t)(int64_t)times;
}

static void left(struct block *b, unsigned group, int times)
{
    calls.changed = times > 0 ? calls.changed | LEFT_EARLY : calls.changed & ~LEFT_EARLY;
    calls.left_after = group;
    if (calls.node)
        move_groups(cell_for(b), b, group + 1, -times);
}

static void dropped(struct block *b)
{
    ((struct link *)calls_place(b))->ends = ending_of(b);
}

static void lost(struct block *b, unsigned group, int times)
{
    if (calls.node)
        extra_of(cell_for(b), group)->waiting.lost += (uint64_t)(int64_t)times;
}

static void device(struct block *b)
{
    if (calls.node)
        extra_of(cell_for(b), 0)->waiting.mmio++;
}

static void is_kind(struct block *b, unsigned group, uint8_t kind, int times)
{
    if (calls.node)
        extra_of(cell_for(b), group | (uint32_t)kind << 24)->waiting.entered += (uint64_t)(int64_t)times;
}

static void cut(enum context context)
{
    settle(calls.last);
    settle_all_silent();
    nodes_cut(context);
    if (nodes_are_many()) {
        programs_merge(false, &calls.cell);
        renew_task();
    }
    follow_place();
}

static void leave(const struct site *site, unsigned group)
{
    settle(calls.last);
    if (calls.node)
        move_groups(cell_for(site->block), site->block, group, -1);
}

static void resume(const struct site *site, unsigned group)
{
    calls.cell = calls.node ? cell_of(calls.node, site->block) : NULL;
    if (calls.cell)
        move_groups(calls.cell, site->block, group, 1);
}

static void begin(const struct site *site)
{
    nodes_forget();
    calls.cell = NULL;
    follow_begin();
    resume(site, site->group);
}

static void output(const struct region *region)
{
    programs_merge(true, &calls.cell);
    nodes_output(region, calls.all);
}

static void forget(void)
{
    nodes_forget();
    calls.cell = NULL;
    follow_place();
}

static void entered(struct block *entry, unsigned depth, bool interrupt)
{
    settle_all_silent();
    follow_entered(entry, depth, interrupt);
}

static void returned(unsigned depth, bool segment, enum context resumed)
{
    if (segment)
        nodes_cut(INTERRUPTS);
    follow_return(depth);
    settle_all_silent(); /* of a string operation that went on */
    if (segment)
        nodes_cut(resumed);
    follow_place();
}

bool calls_want(const char *mode, uint64_t limit, const struct arch *arch)
{
    static const struct listener listener = {
        .dropped = dropped,
        .left = left,
        .lost = lost,
        .device = device,
        .kind = is_kind,
        .begin = begin,
        .cut = cut,
        .leave = leave,
        .resume = resume,
        .output = output,
        .forget = forget,
        .forked = follow_forked,
        .started = follow_started,
        .stopped = follow_stopped,
        .goes_on = follow_goes_on,
        .switched = follow_switched,
        .event = follow_event,
        .entered = entered,
        .returned = returned,
        .is_interrupt = follow_is_interrupt,
        .no_interrupts = follow_no_interrupts,
    };

    calls.all = !strcmp(mode, "all");
    if (!calls.all && strcmp(mode, "kernel")) {
        fprintf(stderr, "kdelta plugin: calls are not followed by the mode %s\n", mode);
        return false;
    }
    calls_wanted = true;
    listener_add(&listener);
    calls.arch = arch;
    nodes_want(limit);
    nodes_forget();
    follow_init();
    return true;
}
