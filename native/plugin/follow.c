/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each task has a stack of frames in the kernel, on top of those of its user code: one or, with coroutines, several. */
#include "follow.h"

#include "symbols.h"

#define NEAR_BYTES (UINT64_C(64) << 10)
#define FAR_BYTES (UINT64_C(8) << 20)   /* a usual limit of stacks */
#define JUMP_BYTES 4096u                /* how far below the top a return address is pushed that is only jumped to */
#define MOST_STACKS 4096u
#define MOST_ENTRIES 64u

struct followed {
    struct stack kernel, *user;
    struct stack **others;              /* user stacks that are not in use; the one left last at the end */
    uint32_t n_others, number;          /* number: of the program that it executes, which forks share */
    uint32_t handlers;                  /* of signals that are to be entered */
    bool sigreturn;
    struct pending waiting;             /* of user code, which has been left meanwhile */
    uint32_t at_entry[MOST_ENTRIES];    /* frames of the kernel below each exception and interrupt */
};

static struct followed *task;
static uint32_t programs;               /* 0 is that of a task of which it is not known yet */

static struct stack *new_stack(void)
{
    return zalloc(1, sizeof(struct stack));
}

static struct followed *new_task(void)
{
    struct followed *t = zalloc(1, sizeof *t);

    t->user = new_stack();
    return t;
}

static void drop_stacks(struct followed *t)
{
    for (uint32_t i = 0; i < t->n_others; i++) {
        free(t->others[i]->frames);
        free(t->others[i]);
    }
    t->n_others = 0;
    t->user->n = 0;
    t->waiting = (struct pending){ 0 };
    t->handlers = 0;
    t->sigreturn = false;
}

void follow_init(void)
{
    static struct link none;

    none.block = block_dummy();
    calls.last = &none;
    calls.changed = RETURNED;
    task = new_task();
    task->number = ++programs;
}

static bool in_region(void)
{
    return now.region.serial;
}

static uint32_t node_on_top(const struct stack *s)
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

/* In a region that these frames do not know, or of which a frame has changed. */
static void renew(struct stack *s, uint32_t from)
{
    if (!in_region())
        return;
    for (uint32_t i = from; i < s->n; i++)
        find_node(s, i, false);
    s->serial = now.region.serial;
}

static void renew_task(void)
{
    if (task->user->serial != now.region.serial)
        renew(task->user, 0);
    if (task->kernel.serial != now.region.serial)
        renew(&task->kernel, 0);
}

static void push(struct stack *s, const struct frame *frame)
{
    if (in_region() && s->serial != now.region.serial)
        renew(s, 0);
    if (stack_push(s, frame) && in_region())
        find_node(s, s->n - 1, true);
}

static void push_root(struct stack *s, struct block *b)
{
    push(s, &(struct frame){ .way = { .entry = ENTRY_ROOT, .block = b } });
}

void follow_place(void)
{
    const struct stack *s = task->kernel.n ? &task->kernel : task->user;

    calls.node = in_region() ? node_on_top(s) : NO_NODE;
    calls.key = (uint64_t)nodes_epoch << 32 | calls.node;
}

uint32_t follow_node_of(const struct block *b)
{
    return b->user && task->user->n ? node_on_top(task->user) : calls.node;
}

void follow_begin(void)
{
    task->user->serial = task->kernel.serial = 0;
    renew_task();
    follow_place();
}

static const struct group *last_group(const struct block *b)
{
    return &b->origin->groups[b->origin->n_groups - 1];
}

/* Calls and returns that the block before made, if it came to its end. */
static struct pending pending_of(const struct link *last)
{
    if (calls.changed & RETURNED)
        return calls.resumed;
    if (!last->ends || calls.changed & LEFT_EARLY)
        return (struct pending){ 0 };
    return (struct pending){ last, calls.slot };
}

/* The first frame of a kernel stack that may end by a return: those before it are of what was interrupted. */
static uint32_t kernel_floor(void)
{
    uint32_t i = task->kernel.n;

    while (i && task->kernel.frames[i - 1].way.entry == ENTRY_CALL)
        i--;
    return i;
}

/* The block is where the root returns to: a caller that was not known. */
static void new_root(struct stack *s, struct block *b)
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

static bool has_root_only(const struct stack *s)
{
    return s->n == 1 && s->frames[0].way.entry == ENTRY_ROOT;
}

static void kernel_returns(struct block *b)
{
    struct stack *s = &task->kernel;
    uint64_t target = b->origin->vaddr;
    uint32_t left = s->frames[s->n - 1].back == target ? s->n - 1 : stack_returned(s, kernel_floor(), 0, target);

    if (left < s->n)
        s->n = left;
    else if (has_root_only(s))
        new_root(s, b);
}

static struct frame frame_of_call(const struct pending *p, struct block *b)
{
    const struct group *g = last_group(p->from->block);

    return (struct frame){
        .way = { .entry = ENTRY_CALL, .block = b, .site = g->last_vaddr, .site_block = p->from->block },
        .back = g->end_vaddr,
        .slot = p->slot,
    };
}

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
    if (s->serial != now.region.serial)
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

static void user_calls(const struct frame *f)
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

static void user_returns(const struct pending *p, struct block *b)
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

static void make(const struct pending *p, struct block *b)
{
    const struct arch *arch = calls.arch;

    if (!p->from)
        return;
    if (p->from->ends == ENDS_RETURN) {
        if (arch->returns_by_stack || b->origin->vaddr != last_group(p->from->block)->end_vaddr)
            b->user ? user_returns(p, b) : kernel_returns(b);
        return;
    }
    const struct frame f = frame_of_call(p, b);

    if (!arch->returns_by_stack && b->origin->vaddr == f.back)
        return; /* its condition did not hold */
    if (arch->overwrites_return && arch->overwrites_return(b->origin->bytes, b->origin->n_bytes))
        return; /* a jump: the call only made room for its target */
    if (b->user)
        user_calls(&f);
    else
        push(&task->kernel, &f);
}

static void leave_handler(void)
{
    struct stack *s = task->user;
    uint32_t i = s->n;

    while (i && s->frames[i - 1].way.entry != ENTRY_SIGNAL)
        i--;
    if (!i)
        return;
    s->n = i - 1;
    task->handlers += s->frames[i - 1].more;
    task->waiting = s->frames[i - 1].pending;
}

static void back_in_user_code(struct block *b)
{
    struct stack *kernel = &task->kernel;
    bool came_by_switch = kernel->n && kernel->frames[0].way.entry == ENTRY_ROOT;
    uint32_t root = came_by_switch ? kernel->frames[0].node : NO_NODE;

    kernel->n = 0;
    if (task->sigreturn && calls.all)
        leave_handler();
    if (!task->user->n)
        push_root(task->user, b);
    if (root && in_region()) /* a system call that was under way when the task was first seen */
        node_hang(root, &(struct way){ .parent = node_on_top(task->user), .entry = ENTRY_SYSCALL });
    const struct pending p = task->waiting;

    task->waiting = (struct pending){ 0 };
    if (task->handlers && calls.all)
        push(task->user, &(struct frame){ .way = { .entry = ENTRY_SIGNAL, .block = b }, .more = task->handlers - 1,
                                          .pending = p });
    else if (p.from && b->origin->vaddr != last_group(p.from->block)->last_vaddr) /* it was not tried again */
        make(&p, b);
    task->handlers = 0;
    task->sigreturn = false;
}

static void system_call(struct block *b, const struct link *last)
{
    struct way way = { .entry = ENTRY_SYSCALL, .block = b, .site_block = last->block,
                       .site = last_group(last->block)->last_vaddr };

    task->kernel.n = 0;
    push(&task->kernel, &(struct frame){ .way = way });
}

void follow(struct block *b, const struct link *last)
{
    const struct pending p = pending_of(last);
    bool entered = calls.changed & ENTERED, returned = calls.changed & RETURNED;

    calls.changed = 0;
    calls.slot = 0;
    calls.resumed = (struct pending){ 0 };
    if (b->user && last->user)
        make(&p, b);
    else if (b->user)
        back_in_user_code(b);
    else if (!entered && last->user && !returned)
        system_call(b, last);
    else if (!entered)
        make(&p, b);
    if (!b->user && !task->kernel.n)
        push_root(&task->kernel, b);
    else if (b->user && !task->user->n)
        push_root(task->user, b);
    follow_place();
}

void calls_enter(struct block *entry, unsigned depth, bool interrupt)
{
    const struct link *last = calls.last;
    bool returned = calls.changed & RETURNED, early = calls.changed & LEFT_EARLY;
    const struct pending p = pending_of(last);
    const struct origin *o = last->block->origin;
    calls_settle();
    struct frame f = { .way = { .entry = interrupt ? ENTRY_INTERRUPT : ENTRY_EXCEPTION, .block = entry } };

    if (last->user) {
        task->kernel.n = 0;
        task->waiting = p;
    } else {
        f.pending = p;
    }
    if (!interrupt && !returned && (calls.all || !last->user)) {
        f.way.site_block = last->block;
        f.way.site = o->groups[early ? calls.left_after : o->n_groups - 1u].last_vaddr;
    }
    if (depth < MOST_ENTRIES)
        task->at_entry[depth] = task->kernel.n;
    push(&task->kernel, &f);
    calls.changed = ENTERED;
    calls.resumed = (struct pending){ 0 };
    calls.slot = 0;
    follow_place();
}

void follow_return(unsigned depth)
{
    struct stack *s = &task->kernel;
    uint32_t left = depth < MOST_ENTRIES ? task->at_entry[depth] : s->n;

    calls.resumed = (struct pending){ 0 };
    if (left < s->n) {
        calls.resumed = s->frames[left].pending;
        s->n = left;
    }
    calls.changed |= RETURNED;
    calls.cell = NULL;
    follow_place();
}

void calls_is_interrupt(void)
{
    for (uint32_t i = task->kernel.n; i; i--) {
        struct way *way = &task->kernel.frames[i - 1].way;

        if (way->entry != ENTRY_EXCEPTION)
            continue;
        way->entry = ENTRY_INTERRUPT;
        way->site = 0;
        way->site_block = NULL;
        renew(&task->kernel, i - 1);
        follow_place();
        return;
    }
}

void calls_no_interrupts(void)
{
    for (uint32_t i = 0; i < task->kernel.n; i++)
        if (task->kernel.frames[i].way.entry == ENTRY_INTERRUPT)
            task->kernel.frames[i].way.entry = ENTRY_EXCEPTION;
    renew(&task->kernel, 0);
    follow_place();
}

static void task_execs(void)
{
    drop_stacks(task);
    task->number = ++programs;
    if (task->kernel.n) {
        struct way *way = &task->kernel.frames[0].way;

        way->entry = way->entry == ENTRY_SYSCALL ? ENTRY_ROOT : way->entry;
        way->site = 0;
        way->site_block = NULL;
    }
    renew(&task->kernel, 0);
    follow_place();
}

uint32_t calls_program(void)
{
    return task->number;
}

void calls_decided(uint32_t program)
{
    task->number = program ? program : ++programs;
    renew(&task->kernel, 0);
    follow_place();
}

void calls_event(uint16_t event)
{
    switch (event) {
    case EVENT_EXECS: task_execs(); break;
    case EVENT_HANDLES: task->handlers++; break;
    case EVENT_SIGRETURN: task->sigreturn = true; break;
    }
}

void calls_switch(struct followed **from, struct followed **to, bool is_new, const struct site *site)
{
    *from = task;
    if (!*to) {
        *to = new_task();
    } else if (is_new) {
        drop_stacks(*to);
        (*to)->kernel.n = 0;
        (*to)->number = 0;
    }
    task = *to;
    if (in_region())
        renew_task();
    if (!task->kernel.n)
        push_root(&task->kernel, site->block);
    calls.cell = NULL;
    follow_place();
}
