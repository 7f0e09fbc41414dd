/* SPDX-License-Identifier: GPL-2.0-or-later */
/* User code may have several stacks: of coroutines, and for handlers. Which one it is on shows in where calls keep their return address.
 */
#include "frames.h"

#include "nodes.h"

#define NEAR_BYTES (UINT64_C(64) << 10)
#define FAR_BYTES (UINT64_C(8) << 20)   /* a usual limit of stacks */
#define JUMP_BYTES 4096u                /* how far below the top a return address is pushed that is only jumped to */
#define MOST_STACKS 4096u

static void use_stack(struct stack *s)
{
    for (uint32_t i = 0; i < task->n_others; i++)
        if (task->others[i] == s) {
            memmove(task->others + i, task->others + i + 1, (task->n_others - i - 1) * sizeof *task->others);
            task->n_others--;
            break;
        }
    task->others = must(realloc(task->others, (task->n_others + 1) * sizeof *task->others));
    task->others[task->n_others++] = task->user;
    task->user = s;
    if (s->serial != nodes_serial)
        renew(s, 0);
}

/* A stack that was never seen: its first code is a root. */
static void use_new_stack(struct block *b)
{
    if (task->n_others < MOST_STACKS) {
        use_stack(new_stack());
    } else { /* the one that was left longest ago goes */
        task->others[0]->n = 0;
        use_stack(task->others[0]);
    }
    push_root(task->user, b);
}

/* A root or a handler does not know where its own stack begins until it calls. */
static void learn_slot(uint64_t slot)
{
    struct frame *top = stack_top(task->user);

    if (top && top->way.entry != ENTRY_CALL && (!top->slot || (slot >= top->slot && slot - top->slot < NEAR_BYTES)))
        top->slot = slot + 1;
}

/* How far above `slot` the nearest frame is that may have made that call; `left` is how many frames that leaves. */
static uint64_t distance(const struct stack *s, uint64_t slot, uint32_t *left)
{
    for (uint32_t i = s->n; i; i--) {
        uint64_t above = s->frames[i - 1].slot;

        *left = i;
        if (!above || above > slot)
            return above ? above - slot : NEAR_BYTES;
        if (i == 1 && s->frames[0].way.entry != ENTRY_CALL && slot - above < NEAR_BYTES)
            return slot - above;
    }
    return UINT64_MAX;
}

/* Goes to the user stack on which that slot is, and drops the frames that it finds abandoned there; false when there is none. */
static bool find_stack(uint64_t slot, uint64_t most_bytes)
{
    uint32_t left = 0, left_there = 0;
    uint64_t least = distance(task->user, slot, &left);
    struct stack *best = task->user;

    for (uint32_t i = task->n_others; i; i--) {
        uint64_t there = distance(task->others[i - 1], slot, &left_there);

        if (there < least) {
            least = there;
            left = left_there;
            best = task->others[i - 1];
        }
    }
    if (least > most_bytes)
        return false;
    if (best != task->user)
        use_stack(best);
    best->n = left;
    return true;
}

void user_calls(const struct frame *f)
{
    learn_slot(f->slot);
    const struct frame *top = stack_top(task->user);
    bool plain = !f->slot || !top || !top->slot ||
        (f->slot < top->slot && top->slot - f->slot <= (task->n_others ? NEAR_BYTES : FAR_BYTES));

    if (!plain && !find_stack(f->slot, FAR_BYTES))
        use_new_stack(f->way.site_block);
    learn_slot(f->slot);
    push(task->user, f);
}

/* On another stack than the one in use; false when it is on none. */
static bool returns_elsewhere(const struct pending *p, uint64_t target)
{
    for (uint32_t i = task->n_others; i; i--) {
        struct stack *s = task->others[i - 1];
        uint32_t left = stack_returned(s, p->slot || s->n <= 1 ? 0 : s->n - 1, p->slot, target);

        if (left < s->n && (!p->slot || s->frames[left].slot == p->slot)) {
            use_stack(s);
            s->n = left;
            return true;
        }
    }
    return false;
}

static bool is_jump(uint64_t slot)
{
    const struct frame *top = stack_top(task->user);

    return !slot || (top && (!top->slot || (slot < top->slot && top->slot - slot < JUMP_BYTES)));
}

static bool is_below_the_root(uint64_t slot)
{
    const struct stack *s = task->user;
    uint64_t root = s->frames[0].slot;

    return s->frames[0].way.entry == ENTRY_ROOT && (slot ? slot >= root && slot - root < NEAR_BYTES : s->n == 1);
}

void user_returns(const struct pending *p, struct block *b)
{
    struct stack *s = task->user;
    uint32_t left = stack_returned(s, 0, p->slot, b->origin->vaddr);

    if (left < s->n && left)
        s->n = left;
    else if (returns_elsewhere(p, b->origin->vaddr))
        return;
    else if (is_below_the_root(p->slot))
        new_root(s, b);
    else if (!is_jump(p->slot) && !find_stack(p->slot, JUMP_BYTES))
        use_new_stack(b);
}
