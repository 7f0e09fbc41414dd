/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks are known by where the switch of stacks keeps their stack pointer; interrupts by their entries and returns. */
#include "task.h"

#include "listener.h"
#include "symbols.h"

#define MAX_FRAMES 32
#define MAX_FORKS 4096

struct task {
    uint64_t key;          /* address of its saved stack pointer; 0 until it is known */
    uint64_t region;       /* serial of the region that it belongs to */
    bool joined, dead, undecided, idles;
    unsigned depth, interrupts;
    bool is_interrupt[MAX_FRAMES];
    struct block *before[MAX_FRAMES]; /* what the frames interrupted */
    struct block *faulted; /* user code after which a page fault came; until the task is back there */
    unsigned faulted_group;
    bool fault_lost;
    struct followed *followed; /* a listener's */
    struct task *next;
};

#define CHAINS 1024

static struct task *chains[CHAINS];
static struct task *running;
/* Of tasks not yet started: the region whose own task made it, or 0; whether a partner made it; and a listener's note on that task. */
static struct fork { uint64_t region; bool joined; uint32_t note; } forks[MAX_FORKS];
static unsigned forks_head, forks_used;
static uint64_t ambiguous_forks;
unsigned task_depth;

static struct task **chain_of(uint64_t key)
{
    return &chains[(key >> 6 ^ key >> 16) % CHAINS];
}

static struct task *task_of(uint64_t key)
{
    for (struct task *t = *chain_of(key); t; t = t->next)
        if (t->key == key)
            return t;
    struct task *t = zalloc(1, sizeof *t);

    t->key = key;
    t->undecided = true;
    t->next = *chain_of(key);
    return *chain_of(key) = t;
}

void task_resume(struct task *task)
{
    running = task ? task : zalloc(1, sizeof *running); /* its key follows when it is switched away from */
    now.idles = running->idles;
    task_depth = running->depth;
}

void task_init(void)
{
    task_resume(NULL);
}

struct task *task_running(void)
{
    return running;
}

static bool is_own(const struct task *t)
{
    return now.region.serial && (now.region.everyone || t->joined || t->region == now.region.serial);
}

static enum context context_of(const struct task *t)
{
    return t->interrupts ? INTERRUPTS : is_own(t) ? OWN : OTHER;
}

enum context task_context(void)
{
    return context_of(running);
}

void task_claim(void)
{
    running->region = now.region.serial;
}

void task_join(void)
{
    running->joined = true;
}

static void fork_push(uint64_t region, bool joined)
{
    if (forks_used == MAX_FORKS) {
        ambiguous_forks++;
        return;
    }
    struct fork *fork = &forks[(forks_head + forks_used++) % MAX_FORKS];

    *fork = (struct fork){ region, joined, 0 };
    REPORT(forked, &fork->note);
}

/* A task that starts was made by the oldest fork that has no task yet; that is a guess only while forks of both kinds are open. */
static struct fork fork_pop(void)
{
    if (!forks_used)
        return (struct fork){ 0 };
    struct fork first = forks[forks_head];

    for (unsigned i = 1; i < forks_used; i++) {
        const struct fork *other = &forks[(forks_head + i) % MAX_FORKS];

        if (other->region != first.region || other->joined != first.joined) {
            ambiguous_forks++;
            break;
        }
    }
    forks_head = (forks_head + 1) % MAX_FORKS;
    forks_used--;
    return first;
}

static void task_starts(struct task *t)
{
    t->dead = false;
    t->depth = t->interrupts = 0;
    t->faulted = NULL;
    struct fork made_by = fork_pop();

    t->region = made_by.region;
    t->joined = made_by.joined;
    REPORT(started, made_by.note);
    t->undecided = false;
    task_depth = 0;
}

/* What was interrupted does not go on where it was, or what follows is no longer the interrupt's. */
static void frames_end(void)
{
    if (running->interrupts) {
        segment_close(INTERRUPTS);
        REPORT(no_interrupts);
    }
    running->depth = running->interrupts = task_depth = 0;
}

/* The frame was pushed by an entry that is for everything, and began a segment there. */
static void frame_is_interrupt(void)
{
    if (!running->depth || running->is_interrupt[running->depth - 1])
        return;
    running->is_interrupt[running->depth - 1] = true;
    running->interrupts++;
    REPORT(is_interrupt);
}

void task_event(uint16_t event)
{
    switch (event) {
    case EVENT_FORKED: fork_push(is_own(running) ? now.region.serial : 0, running->joined); break;
    case EVENT_STARTS:
        if (running->undecided)
            task_starts(running);
        break;
    case EVENT_RESUMES:
        if (running->undecided)
            REPORT(started, 0);
        running->undecided = false;
        break;
    case EVENT_IDLES: now.idles = running->idles = n_cpus > 1; break; /* one CPU's segments are closed for less */
    case EVENT_SIGNALLED: frames_end(); break;
    case EVENT_IS_INTERRUPT: frame_is_interrupt(); break;
    case EVENT_EXITS: running->dead = true; /* fall through */
    case EVENT_EXECS: case EVENT_HANDLES: case EVENT_SIGRETURN: case EVENT_SYSTEM_CALL:
        REPORT(event, event);
    }
}

void task_frame_push(struct block *entry, struct block *before)
{
    bool interrupt = entry->flags & AT_INTERRUPT, may_be = entry->flags & AT_EITHER;

    if ((interrupt || may_be) && !running->interrupts)
        segment_close(task_context());
    if (running->depth == MAX_FRAMES)
        return;
    REPORT(entered, entry, running->depth, interrupt);
    running->before[running->depth] = before;
    running->is_interrupt[running->depth++] = interrupt;
    running->interrupts += interrupt;
    task_depth = running->depth;
}

void task_frame_ends(const struct block *b)
{
    unsigned top = running->depth - 1;

    if (running->depth && running->interrupts == 1 && running->is_interrupt[top] && !running->before[top]->user)
        count_returns(b);
}

struct block *task_frame_pop(void)
{
    bool interrupt = running->is_interrupt[--running->depth];

    task_depth = running->depth;
    running->interrupts -= interrupt;
    bool segment = interrupt && !running->interrupts;

    REPORT(returned, running->depth, segment, task_context());
    if (segment)
        segment_close_interrupt(task_context());
    return running->before[running->depth];
}

/* Again at the instruction: it was not executed. At the one after it: it was. (Elsewhere: at its target, or in a signal's handler.) */
static void decide_fault(uint64_t vaddr)
{
    struct block *b = running->faulted;
    const struct group *g = &b->origin->groups[running->faulted_group];

    running->faulted = NULL;
    if (vaddr == g->last_vaddr && !running->fault_lost)
        count_lose(b, running->faulted_group);
    else if (vaddr == g->end_vaddr && running->fault_lost)
        count_find(b, running->faulted_group);
}

void task_back_in_user_code(uint64_t vaddr)
{
    frames_end();
    if (running->faulted)
        decide_fault(vaddr);
}

void task_user_fault(struct block *b, unsigned group, bool lost)
{
    running->faulted = b;
    running->faulted_group = group;
    running->fault_lost = lost;
}

/* An instruction that moves several registers accesses memory for each of them, upwards: the first access counts. */
static bool goes_on(uint64_t vaddr, uint64_t *last)
{
    uint64_t distance = vaddr - *last;

    *last = vaddr;
    return distance == 4 || distance == 8;
}

void task_switch_store(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *site)
{
    static uint64_t last;

    (void)vcpu, (void)info, (void)site;
    if (goes_on(vaddr, &last) || running->key)
        return;
    running->key = vaddr;
    running->next = *chain_of(vaddr);
    *chain_of(vaddr) = running;
}

void task_switch_load(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
    static uint64_t last;

    (void)vcpu, (void)info;
    if (goes_on(vaddr, &last))
        return;
    struct task *next = task_of(vaddr), *before = running;
    const struct site *site = data;

    if (next->dead)
        next->undecided = true;
    REPORT(leave, site, site->group + 1u);
    /* Who an undecided task is shows in what it executes next, before this segment ends. */
    if (next->undecided || context_of(running) != context_of(next) || running->idles != next->idles)
        segment_close_after(context_of(running), site);
    if (next->undecided) {
        next->joined = next->idles = false;
        next->region = 0;
        next->depth = next->interrupts = 0;
    }
    running = next;
    now.idles = next->idles;
    task_depth = running->depth;
    REPORT(switched, &before->followed, &next->followed, next->undecided, site);
    REPORT(resume, site, site->group + 1u);
}

void task_each_key(void (*visit)(uint64_t key, void *data), void *data)
{
    for (size_t i = 0; i < CHAINS; i++)
        for (const struct task *t = chains[i]; t; t = t->next)
            visit(t->key, data);
}

uint64_t task_ambiguous_forks(void)
{
    return ambiguous_forks;
}
