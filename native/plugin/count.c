/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counters' rules.
 *
 * Every group counts its own entries. What is left to do at each block is to see whether the block before it was left early, and to
 * keep a running total, so that iterations and contexts can be distinguished without looking at all blocks each time.
 */
#include "count.h"

#include <unistd.h>

#include "kinds.h"
#include "listener.h"
#include "output.h"

#define MAX_ITERATIONS (1u << 20)
#define WHOLE_PROGRAM "command" /* the agent's region, in which any task of the program may begin one */

/* QEMU left the last instruction out of the translation: it starts the next block. */
static void drop_last(struct block *b)
{
    struct origin *o = b->origin;

    o->n_groups--;
    b->insns--;
    b->tail--;
    /* What left before the dropped group left after the one that is now the last: not early. */
    b->left -= o->groups[o->n_groups - 1].left;
    o->groups[o->n_groups - 1].left = 0;
    o->doubtful = false;
    now.run[b->user]--;
    REPORT(dropped, b);
}

/* Whether the access of the group's last instruction was made when it was last reached; kept for user code only. */
static bool access_made(const struct block *b, unsigned group)
{
    return b->origin->groups[group].accessed_at == b->live[group];
}

/* Whether a fault after that group of user code was its last instruction's, and not the fetch of what follows. */
static bool lost_in_user_code(const struct block *b, unsigned group, unsigned flags)
{
    const struct insn_facts *last = &b->origin->groups[group].last;
    bool unmade = last->loads + last->stores && !access_made(b, group);

    if (flags & AT_ARITHMETIC)
        return last->can_fault;
    if (flags & AT_PAGE_FAULT)
        return unmade;
    return !last->trap_counts && (last->special || unmade);
}

/* A page fault comes from the instruction or from the fetch of the next; where the task goes on will tell, if this guess is wrong. */
static void fault_of_user_code(struct block *b, unsigned group, unsigned flags)
{
    bool lost = lost_in_user_code(b, group, flags);

    if (lost)
        count_lose(b, group);
    if (flags & AT_PAGE_FAULT && b->origin->groups[group].last.can_fault)
        task_user_fault(b, group, lost);
}

/* Whether QEMU may have left the last instruction out, as far as is known: the group before it was the end so far. */
static bool last_is_open(const struct block *b, unsigned left_after)
{
    return b->origin->doubtful && left_after + 2u == b->origin->n_groups && !b->live[left_after + 1];
}

/* Certain only where nothing else can have ended the block there. In doubt no: then it was left early, which comes to the same. */
static bool last_was_dropped(const struct block *b, unsigned left_after, const struct block *to)
{
    const struct group *group = &b->origin->groups[left_after];

    return last_is_open(b, left_after) && group->last_vaddr != now.device_at &&
        (to->origin->vaddr == group[1].last_vaddr || to->flags & AT_INTERRUPT);
}

/* The group after which a block was left that was left before its last group. */
static unsigned left_after(const struct block *b)
{
    unsigned g = 0;

    while (b->live[g] - b->origin->groups[g].left == b->live[g + 1])
        g++;
    return g;
}

/* Notes that the block was left after that group; with -1, that it was not. */
static void note_left(struct block *b, unsigned g, int times)
{
    b->origin->groups[g].left += (uint64_t)(int64_t)times;
    b->left += (uint64_t)(int64_t)times;
    REPORT(left, b, g, times);
    now.run[b->user] -= insns_from(b, g + 1) * (uint64_t)(int64_t)times;
}

/* The block was left before its last group: by a fault, or since QEMU executed an access to a device or to code alone. */
static void left_early(struct block *b, const struct block *to, unsigned flags)
{
    const struct group *groups = b->origin->groups;
    unsigned g = left_after(b);

    if (last_was_dropped(b, g, to)) {
        drop_last(b);
        return;
    }
    bool open = b->user && last_is_open(b, g); /* then the fault may be of the fetch of that last instruction */

    note_left(b, g, 1);
    if (flags & AT_FAULT && open)
        fault_of_user_code(b, g, flags);
    else if (flags & AT_FAULT || to->origin->vaddr == groups[g].last_vaddr)
        count_lose(b, g);
}

/* A string operation that has no callback faulted: the one that stands nearest to the block that was seen last. */
static void lose_silently(const struct block *before)
{
    struct block *nearest = NULL;
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < now.n_silent; i++) {
        uint64_t a = now.silent[i]->origin->vaddr, b = before->origin->vaddr;
        uint64_t distance = a < b ? b - a : a - b;

        if (distance < least) {
            least = distance;
            nearest = now.silent[i];
        }
    }
    if (nearest)
        count_lose(nearest, 0);
}

/* A fault after a block whose groups were all entered: of its last instruction, or of the fetch of what follows. */
static void fault_after(struct block *b, unsigned flags)
{
    unsigned tail = b->origin->n_groups - 1u;
    const struct insn_facts *last = &b->origin->groups[tail].last;

    if (b == before_all)
        return;
    if (b->user)
        fault_of_user_code(b, tail, flags);
    else if (flags & AT_EITHER) { /* an interrupt comes after blocks, too */
        if (last->loads + last->stores && !access_made(b, tail))
            count_lose(b, tail);
    } else if (last->can_fault && !last->leaves_kernel)
        count_lose(b, tail);
    else if (!last->leaves_kernel) /* kernel code is always there: something after the block faulted */
        lose_silently(b);
}

/* What the block is the entry of, after that block. */
static unsigned entered_by(const struct block *b, const struct block *before, bool early)
{
    const struct origin *o = before->origin;
    bool call = b->flags & AT_TRAP && !early && o->groups[o->n_groups - 1].last.calls;
    bool again = now.in_stub && !(b->flags & AT_STUB);

    if (b->flags & AT_ENTRY)
        now.in_stub = b->flags & AT_STUB;
    if (again)
        return b->flags & ~AT_ENTRY;
    return call ? b->flags & ~(AT_EXCEPTION | AT_FAULT | AT_PAGE_FAULT | AT_EITHER) : b->flags;
}

void count_rare(struct block *b, struct block *before, bool early)
{
    struct block *after = before;
    unsigned flags = entered_by(b, before, early);

    if (early)
        left_early(before, b, flags);
    if (before->flags & ENDS_FRAME && task_depth) {
        struct block *resumed = task_frame_pop();

        if (!resumed->user)
            after = resumed; /* it went on without a callback: in a string operation that repeats */
    }
    if (b->user)
        task_back_in_user_code(b->origin->vaddr);
    if (flags & AT_FAULT && !early)
        fault_after(after, flags);
    if (flags & (AT_INTERRUPT | AT_EXCEPTION))
        task_frame_push(b, after);
    if (b->flags & ENDS_FRAME)
        task_frame_ends(b);
    if (b->flags & AT_EVENT)
        task_event(b->origin->event);
    if (b->epoch != now.epoch)
        segment_touch(b);
}

void count_silently(struct block *b)
{
    for (size_t i = 0; i < now.n_silent; i++)
        if (now.silent[i] == b)
            return;
    now.silent = must(realloc(now.silent, (now.n_silent + 1) * sizeof *now.silent));
    now.silent[now.n_silent++] = b;
}

/* What is kept of a CPU while another one executes. */
static struct cpu {
    struct block *block;    /* the one that it executed last; NULL: none yet */
    unsigned left;          /* if it was left early: after which group, and 1 */
    bool accessed;          /* whether the access of the last instruction that was reached in it was made */
    bool in_stub;
    uint64_t device_at;
    struct task *running;
} cpus[MOST_CPUS];

static struct group *reached(const struct cpu *cpu)
{
    return &cpu->block->origin->groups[cpu->left ? cpu->left - 1 : cpu->block->tail];
}

/* Another CPU may execute the same block: so its counters are left as of a block that came to its end. */
static void stop(struct cpu *cpu)
{
    struct block *b = now.block;

    cpu->block = b;
    cpu->left = b->live[0] - b->left != b->live[b->tail] ? left_after(b) + 1 : 0;
    if (b != before_all)
        cpu->accessed = access_made(b, cpu->left ? cpu->left - 1 : b->tail);
    if (cpu->left)
        note_left(b, cpu->left - 1, 1);
    segment_close(task_context());
    cpu->in_stub = now.in_stub;
    cpu->device_at = now.device_at;
    cpu->running = task_running();
    REPORT(stopped, now.cpu);
}

static void go_on(struct cpu *cpu)
{
    struct block *b = now.block = cpu->block ? cpu->block : before_all;

    task_resume(cpu->running);
    now.in_stub = cpu->in_stub;
    now.device_at = cpu->device_at;
    if (b->epoch != now.epoch)
        segment_touch(b);
    REPORT(goes_on, now.cpu);
    if (cpu->left)
        note_left(b, cpu->left - 1, -1);
    if (b != before_all)
        reached(cpu)->accessed_at = b->live[reached(cpu) - b->origin->groups] - !cpu->accessed;
}

void count_on_cpu(unsigned index)
{
    if (index == now.cpu)
        return;
    stop(&cpus[now.cpu]);
    now.cpu = index;
    go_on(&cpus[index]);
}

/* A machine may have several CPUs, of which the guest starts one. */
_Noreturn void refuse_cpu(unsigned int vcpu)
{
    fprintf(stderr, "kdelta plugin: CPU %u executes code; only the first one may\n", vcpu);
    _exit(1);
}

void count_block(unsigned int vcpu, void *data)
{
    count_entry(vcpu, data);
}

/* Blocks of one instruction are also how QEMU executes an access to a device: without any other callback. */
void count_device_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
    struct block *b = data;
    struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);

    (void)vcpu;
    if (!address || !qemu_plugin_hwaddr_is_io(address))
        return;
    if (b->epoch != now.epoch)
        segment_touch(b);
    if (!kinds_device(b, address, qemu_plugin_mem_is_store(info))) {
        b->origin->groups[0].mmio++;
        REPORT(device, b);
    }
    now.device_at = b->origin->vaddr;
}

/* An instruction that reads and writes has made its access when it has written. */
void count_user_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
    const struct site *site = data;
    struct group *g = &site->block->origin->groups[site->group];

    (void)vcpu, (void)vaddr;
    if (!g->last.stores || qemu_plugin_mem_is_store(info))
        g->accessed_at = site->block->live[site->group];
}

void region_begin(const char *name, size_t length, const struct site *site)
{
    struct region *r = &now.region;

    if (r->serial && r->begun_by != task_running() && strcmp(r->name, WHOLE_PROGRAM))
        output_marks_at_once(r->name, name, length);
    if (r->serial)
        region_end(site); /* the new one is inside it: what was before has its own record */
    segment_close_at(task_context(), site);
    r->everyone = length && *name == '*';
    if (r->everyone)
        name++, length--;
    if (length >= sizeof r->name)
        length = sizeof r->name - 1;
    memcpy(r->name, name, length);
    r->name[length] = 0;
    r->serial = ++now.regions_begun;
    r->n_iterations = r->iterations_lost = r->n_blocks = 0;
    memset(&r->sum, 0, sizeof r->sum);
    memset(&r->whole, 0, sizeof r->whole);
    memset(r->by_cpu, 0, sizeof r->by_cpu);
    memset(r->idle_by_cpu, 0, sizeof r->idle_by_cpu);
    r->began_on = now.cpu;
    r->begun_by = task_running();
    task_claim();
    REPORT(begin, site);
}

static void sum_up(struct region *r)
{
    r->whole.own_user += r->sum.own_user;
    r->whole.own_kernel += r->sum.own_kernel;
    r->whole.interrupts += r->sum.interrupts;
    r->whole.other += r->sum.other;
}

void region_iteration(const struct site *site)
{
    struct region *r = &now.region;

    if (!r->serial)
        return;
    segment_account(task_context(), insns_from(site->block, site->group));
    if (r->n_iterations == MAX_ITERATIONS) {
        r->iterations_lost++;
    } else {
        if (r->n_iterations == r->capacity) {
            r->capacity = r->capacity ? 2 * r->capacity : 1024;
            r->iterations = must(realloc(r->iterations, r->capacity * sizeof *r->iterations));
        }
        r->iterations[r->n_iterations++] = r->sum;
    }
    sum_up(r);
    memset(&r->sum, 0, sizeof r->sum);
}

static void forget_blocks(struct region *r)
{
    for (size_t i = 0; i < r->n_blocks; i++) {
        struct origin *o = r->blocks[i]->origin;

        o->in_region = false;
        for (uint16_t g = 0; g < o->n_groups; g++) {
            memset(o->groups[g].sum, 0, sizeof o->groups[g].sum);
            kinds_forget(&o->groups[g]);
        }
    }
    r->n_blocks = 0;
}

void region_end(const struct site *site)
{
    struct region *r = &now.region;

    if (!r->serial)
        return;
    REPORT(leave, site, site->group);
    segment_close_at(task_context(), site);
    REPORT(end, site);
    sum_up(r);
    if (output_region(r))
        REPORT(output, r);
    forget_blocks(r);
    r->serial = 0;
    REPORT(forget);
}
