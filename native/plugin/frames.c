/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A frame's node is found when it is pushed in a region, or when its task first runs in one. */
#include "frames.h"

#include "nodes.h"

struct followed *task;

struct stack *new_stack(void)
{
    return zalloc(1, sizeof(struct stack));
}

bool in_region(void)
{
    return now.region.serial;
}

uint32_t node_on_top(const struct stack *s)
{
    return s->n ? s->frames[s->n - 1].node : NO_NODE;
}

/* The node that a frame would be called by. */
static uint32_t node_below(const struct stack *s, uint32_t index)
{
    if (index)
        return s->frames[index - 1].node;
    return s == &task->kernel ? node_on_top(task->user) : NO_NODE;
}

static void find_node(struct stack *s, uint32_t index, bool count)
{
    struct frame *f = &s->frames[index];

    f->way.parent = f->way.entry == ENTRY_INTERRUPT ? NO_NODE : node_below(s, index);
    f->way.task = f->way.parent ? 0 : task->number;
    f->node = node_of(&f->way, count);
}

void renew(struct stack *s, uint32_t from)
{
    if (!in_region())
        return;
    for (uint32_t i = from; i < s->n; i++)
        find_node(s, i, false);
    s->serial = nodes_serial;
}

void renew_task(void)
{
    if (task->user->serial != nodes_serial)
        renew(task->user, 0);
    if (task->kernel.serial != nodes_serial)
        renew(&task->kernel, 0);
}

void push(struct stack *s, const struct frame *frame)
{
    if (in_region() && s->serial != nodes_serial)
        renew(s, 0);
    if (stack_push(s, frame) && in_region())
        find_node(s, s->n - 1, true);
}

void push_root(struct stack *s, struct block *b)
{
    push(s, &(struct frame){ .way = { .entry = ENTRY_ROOT, .block = b } });
}

void new_root(struct stack *s, struct block *b)
{
    struct frame old = s->frames[0];

    s->n = 0;
    push_root(s, b);
    if (in_region()) {
        s->frames[0].slot = 0;
        node_hang(old.node, &(struct way){ .parent = s->frames[0].node, .entry = ENTRY_CALL, .site = b->origin->vaddr,
                                           .site_block = b, .site_is_return = true });
    }
}
