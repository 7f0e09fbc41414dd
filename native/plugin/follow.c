/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each task has a stack of frames in the kernel, on top of those of its user code: one or, with coroutines, several. */
#include "follow.h"

#include "frames.h"
#include "nodes.h"
#include "programs.h"
#include "symbols.h"

struct calls calls;

static struct followed *new_task(void)
{
    struct followed *t = zalloc(1, sizeof *t);

    t->user = new_stack();
    programs_watch(t);
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

/* A CPU that was not seen before. */
static void first_task(void)
{
    static struct link none;

    if (!none.block)
        none.block = block_dummy();
    calls.last = &none;
    calls.changed = RETURNED;
    calls.slot = 0;
    calls.resumed = (struct pending){ 0 };
    task = new_task();
    task->number = program_new();
}

void follow_init(void)
{
    first_task();
}

/* What is kept of a CPU while another one executes. */
static struct {
    struct calls calls;
    struct followed *task;
} cpus[MOST_CPUS];

void follow_stopped(unsigned cpu)
{
    cpus[cpu].calls = calls;
    cpus[cpu].task = task;
}

void follow_goes_on(unsigned cpu)
{
    if (cpus[cpu].task) {
        calls = cpus[cpu].calls;
        task = cpus[cpu].task;
    } else {
        first_task();
    }
    calls.cell = NULL; /* it may be of a region that has ended */
    if (in_region())
        renew_task();
    follow_place();
}

void follow_place(void)
{
    const struct stack *s = task->kernel.n ? &task->kernel : task->user;

    calls.node = in_region() ? node_on_top(s) : NO_NODE;
    calls.key = (uint64_t)nodes_serial << 32 | calls.node;
}

uint32_t follow_node_of(const struct block *b)
{
    return b->user && task->user->n ? node_on_top(task->user) : calls.node;
}

void follow_begin(void)
{
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
    else if (s->n > 1 && s->frames[s->n - 1].way.entry == ENTRY_CALL && !s->frames[s->n - 1].back)
        s->n--; /* a system call's function, which the entry jumped to */
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

/* The function of a system call is a frame however control came to it: by a jump it takes the place of the function that jumped, which
 * returns with it; after a jump of the entry itself, where it returns to is not known. */
static void system_call_begins(struct block *b)
{
    struct stack *s = &task->kernel;

    if (!s->n || s->frames[0].way.entry != ENTRY_SYSCALL || s->frames[0].found)
        return;
    s->frames[0].found = true;
    struct frame f = s->frames[s->n - 1];

    if (f.way.entry != ENTRY_CALL)
        f = (struct frame){ .way = { .entry = ENTRY_CALL } };
    else if (f.way.block->origin->vaddr == b->origin->vaddr)
        return;
    else
        s->n--;
    f.way.block = b;
    push(s, &f);
}

void follow(struct block *b, const struct link *last)
{
    const struct pending p = pending_of(last);
    bool entered = calls.changed & ENTERED, returned = calls.changed & RETURNED, begins = calls.changed & SYSTEM_CALL_BEGINS;

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
    if (begins)
        system_call_begins(b);
    follow_place();
}

void follow_entered(struct block *entry, unsigned depth, bool interrupt)
{
    const struct link *last = calls.last;
    bool returned = calls.changed & RETURNED, early = calls.changed & LEFT_EARLY;
    const struct pending p = pending_of(last);
    const struct origin *o = last->block->origin;
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

void follow_is_interrupt(void)
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

void follow_no_interrupts(void)
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
    task->number = program_new();
    if (task->kernel.n) {
        struct way *way = &task->kernel.frames[0].way;

        way->entry = way->entry == ENTRY_SYSCALL ? ENTRY_ROOT : way->entry;
        way->site = 0;
        way->site_block = NULL;
    }
    renew(&task->kernel, 0);
    follow_place();
}

void follow_forked(uint32_t *note)
{
    program_forks(task->number);
    *note = task->number;
}

void follow_started(uint32_t program)
{
    if (program)
        program_starts(program);
    task->number = program ? program : program_new();
    renew(&task->kernel, 0);
    follow_place();
}

void follow_event(uint16_t event)
{
    switch (event) {
    case EVENT_EXECS: task_execs(); break;
    case EVENT_HANDLES: task->handlers++; break;
    case EVENT_SIGRETURN: task->sigreturn = true; /* fall through */
    case EVENT_SYSTEM_CALL: calls.changed |= SYSTEM_CALL_BEGINS; break;
    case EVENT_EXITS: task->ended = true; break;
    }
}

void follow_switched(struct followed **from, struct followed **to, bool is_new, const struct site *site)
{
    *from = task;
    if (!*to) {
        *to = new_task();
    } else if (is_new) {
        drop_stacks(*to);
        (*to)->kernel.n = 0;
        (*to)->number = 0;
        (*to)->ended = false;
    }
    task = *to;
    if (in_region())
        renew_task();
    if (!task->kernel.n)
        push_root(&task->kernel, site->block);
    calls.cell = NULL;
    follow_place();
}
