/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kdelta's QEMU TCG plugin: what the translator is told to do, before and after the first region is announced.
 *
 * Arguments: out=FILE rules=FILE [job=FILE] [symbols=FILE] [count=off|now] [cpus=N [turns=on [turns-monitor=SOCKET]]] [trace=on|data [data-line=BYTES] [trace-limit=ITEMS]]
 * [conflicts=on] [calls=kernel|all [calls-limit=NODES]]. Until the guest's first ARM mark only marks are acted on and translated code is noted; then all code
 * is translated again, with counters. With count=now that is from the start, with count=off never.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "channel.h"
#include "conflicts.h"
#include "count.h"
#include "cpus.h"
#include "data.h"
#include "halt.h"
#include "insn.h"
#include "kinds.h"
#include "listener.h"
#include "nodes.h"
#include "output.h"
#include "symbols.h"
#include "task.h"
#include "trace.h"
#include "turns.h"

static const struct arch *const arches[] = { &arch_x86_64, &arch_arm, &arch_aarch64, &arch_riscv64, NULL };
static struct arch arch; /* a copy, to which the guest's symbols are added */
static qemu_plugin_id_t plugin;
static qemu_plugin_exec_cb_t at_each_block = count_block;

struct options {
    const char *out, *calls, *symbols;
    bool rules, trace, now;
    uint64_t limit, calls_limit;
};

/* To loads and stores alike: QEMU 7.2 tests a narrower filter against the wrong bits. */
static void listen(struct qemu_plugin_insn *insn, qemu_plugin_mem_cb_t cb, void *data)
{
    qemu_plugin_register_vcpu_mem_cb(insn, cb, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, data);
}

static void not_asked(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
    (void)vcpu, (void)info, (void)vaddr, (void)data;
}

/* Keeps from an instruction's callbacks what QEMU's own functions (helpers) access. For one whose accesses are all made by translated
 * code, and before it gets callbacks.
 *
 * QEMU tells what helpers access to the instruction that was last announced to use some. Before 8.0 (issue 1381) that is not taken back
 * where the instruction itself leaves the block by such a function: a jump into another page, or a string operation near the end of a
 * page. Then a cmpxchg16b somewhere after it, or the delivery of an interrupt, counts as its accesses. Of a helper's access the
 * callbacks are asked in their order up to the first that does not want its kind; of one in translated code, each for itself. All that
 * take a later version of the interface are without that bug, and ask each callback for itself.
 */
static void shield_from_helpers(struct qemu_plugin_insn *insn)
{
    if (PLUGIN_API == 1)
        qemu_plugin_register_vcpu_mem_cb(insn, not_asked, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_NONE, NULL);
}

static void act_at_mark(struct qemu_plugin_insn *insn, enum mark mark, struct site *site)
{
    if (mark == MARK_JOB)
        qemu_plugin_register_vcpu_insn_exec_cb(insn, channel_job, QEMU_PLUGIN_CB_NO_REGS, channel_job_page(insn));
    else
        qemu_plugin_register_vcpu_insn_exec_cb(insn, channel_mark, QEMU_PLUGIN_CB_NO_REGS, site);
}

static void act_at_halt(struct qemu_plugin_insn *insn, const struct insn_facts *facts)
{
    if (n_cpus == 1 && halt_is(facts))
        qemu_plugin_register_vcpu_insn_exec_cb(insn, halt_begins, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

static void note_seen(const struct insn *insns, size_t n)
{
    seen_add(insns->vaddr, (uint32_t)(insns[n - 1].vaddr + insns[n - 1].size - insns->vaddr));
}

/* Before the first region: only what the guest says. */
static void translate_quiet(struct qemu_plugin_tb *tb)
{
    static struct site sites[MARK_KINDS];
    size_t n = qemu_plugin_tb_n_insns(tb);
    const struct insn *insns = insns_of(tb, &arch);

    turns_must_have_begun();
    note_seen(insns, n);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        struct insn_facts facts = insns[i].facts;

        if (facts.argument)
            listen(insn, channel_byte, NULL);
        if (facts.mark) {
            sites[facts.mark].mark = facts.mark;
            act_at_mark(insn, facts.mark, &sites[facts.mark]);
        }
        act_at_halt(insn, &facts);
    }
}

/* An element is moved once it is stored: one whose store faults was loaded, and is loaded again. */
static void instrument_string(struct qemu_plugin_insn *insn, struct block *b, struct group *g)
{
    enum qemu_plugin_mem_rw each = g->last.loads && g->last.stores ? STORES_ONLY : QEMU_PLUGIN_MEM_RW;

    add_at_access(insn, each, &g->elements, 1);
    if (g->last.repeats) /* each pass but the last, which finds that no element is left, is taken back */
        add_at_access(insn, each, &now.run[b->user], (uint64_t)-1);
}

/* Of ldrd and strd on a condition: one access to both registers in QEMU 10, two in 7.2. */
static void count_pair(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *group)
{
    struct group *g = group;

    (void)vcpu, (void)vaddr;
    g->elements += qemu_plugin_mem_size_shift(info) == 3 ? 2 : 1;
}

static void instrument_last(struct qemu_plugin_insn *insn, struct block *b, uint16_t group)
{
    struct origin *o = b->origin;
    struct group *g = &o->groups[group];

    kinds_watch(insn, g);
    if (g->last.argument)
        listen(insn, channel_byte, NULL);
    if (g->last.switch_store && symbols_in_switch(g->last_vaddr))
        listen(insn, task_switch_store, NULL);
    if (g->last.switch_load && symbols_in_switch(g->last_vaddr))
        listen(insn, task_switch_load, &g->site);
    if (g->last.is_string)
        instrument_string(insn, b, g);
    else if (g->last.optional && g->last.pair)
        listen(insn, count_pair, g);
    else if (g->last.optional)
        add_at_access(insn, QEMU_PLUGIN_MEM_RW, &g->elements, 1);
    else if (!b->user && b->insns == 1 && g->last.loads + g->last.stores)
        listen(insn, count_device_access, b);
    /* In user code the fetch after the block can fault as well as its last instruction. */
    if ((b->user || arch.one_entry) && g->last.can_fault && group + 1u + o->doubtful >= o->n_groups)
        listen(insn, count_user_access, &g->site);
}

static void find_place(struct block *b)
{
    struct origin *o = b->origin;

    b->flags |= symbols_flags_at(o->vaddr);
    o->event = symbols_event_at(o->vaddr);
    if (b->flags & ENDS_FRAME && !symbols_in_return_text(o->groups[o->n_groups - 1].last_vaddr))
        b->flags &= ~ENDS_FRAME;
}

/* Whether callbacks of the block's last instruction would be asked after the block, too, and wrongly. */
static bool needs_shield(const struct block *b)
{
    const struct insn_facts *last = &b->origin->groups[b->origin->n_groups - 1].last;

    return last->is_string || ((data_wanted || last->optional) && last->jumps && !last->special) || calls_wants_slot(b);
}

/* Where a call keeps its return address, or a return reads it. */
static void listen_to_slot(struct qemu_plugin_insn *insn, const struct block *b)
{
    bool is_call = b->origin->groups[b->origin->n_groups - 1].last.calls_function;

    listen(insn, calls_access, (void *)(uintptr_t)is_call);
}

static void translate_counting(struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb), index = 0;
    const struct insn *insns = insns_of(tb, &arch);
    struct block *b = block_of(tb, &arch, insns);

    turns_must_have_begun();
    note_seen(insns, n);
    find_place(b);
    REPORT(translated, b);
    if (is_silent(b)) {
        count_silently(b);
        add_at_insn(qemu_plugin_tb_get_insn(tb, 0), &now.run[0], 1);
    } else {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, at_each_block, QEMU_PLUGIN_CB_NO_REGS, calls_wanted ? calls_place(b) : b);
    }
    if (needs_shield(b))
        shield_from_helpers(qemu_plugin_tb_get_insn(tb, n - 1));
    if (calls_wants_slot(b))
        listen_to_slot(qemu_plugin_tb_get_insn(tb, n - 1), b);
    for (uint16_t g = 0; g < b->origin->n_groups; g++) {
        struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, index);
        enum mark mark = b->origin->groups[g].last.mark;

        index += b->origin->groups[g].insns;
        /* A mark's callback comes before its group's counter: the region starts and ends at the mark itself. */
        if (mark)
            act_at_mark(first, mark, &b->origin->groups[g].site);
        if (g || !b->head)
            add_at_insn(first, &b->live[g], 1);
        instrument_last(qemu_plugin_tb_get_insn(tb, index - 1), b, g);
    }
    for (size_t i = 0; i < n; i++)
        act_at_halt(qemu_plugin_tb_get_insn(tb, i), &insns[i].facts);
    for (size_t i = 0; i < n && data_wanted; i++)
        listen(qemu_plugin_tb_get_insn(tb, i), data_access, NULL);
    for (size_t i = 0; i < n && conflicts_wanted && !b->user; i++)
        listen(qemu_plugin_tb_get_insn(tb, i), conflicts_access, conflicts_place(&insns[i]));
}

static void at_exit(void)
{
    if (now.region.serial)
        output_warning("a region never ended", 1);
    if (task_ambiguous_forks())
        output_warning("forks whose maker is a guess", task_ambiguous_forks());
    output_seen();
    output_end();
}

/* The guest is done. What QEMU would do on its way out, such as asking the guest to turn itself off, is left out. */
static void off(void)
{
    at_exit();
    _exit(0);
}

static void start_counting(void)
{
    at_translation(plugin, translate_counting);
    at_end(plugin, at_exit);
}

/* Where the kernel is, of architectures that do not say. */
static void place_kernel(void)
{
    uint64_t start, end;

    if (!symbols_image(&start, &end))
        return;
    if (arch.kernel_start_of)
        arch.kernel_start = arch.kernel_start_of(start);
    if (!arch.image_bytes) {
        arch.image_start = start;
        arch.image_bytes = end - start;
    }
}

static void know_kernel(void)
{
    channel_arm = NULL;
    place_kernel();
    if (!symbols_known())
        output_warning("the guest's symbols are not known: tasks and interrupts are not distinguished", 1);
}

static void arm(void)
{
    know_kernel();
    drop_translations(plugin, start_counting);
}

/* What stands after "key="; NULL when it is another argument. */
static const char *value_of(const char *argument, const char *key)
{
    size_t length = strlen(key);

    return !strncmp(argument, key, length) && argument[length] == '=' ? argument + length + 1 : NULL;
}

static bool take(const char *argument, struct options *options)
{
    const char *value;

    if ((value = value_of(argument, "out")))
        options->out = value;
    else if ((value = value_of(argument, "rules")))
        options->rules = rules_load(value);
    else if ((value = value_of(argument, "job")))
        return channel_open_job(value);
    else if ((value = value_of(argument, "symbols")))
        options->symbols = value;
    else if ((value = value_of(argument, "cpus")))
        cpus_set((unsigned)strtoul(value, NULL, 10));
    else if (!strcmp(argument, "turns=on"))
        turns_want();
    else if ((value = value_of(argument, "turns-monitor")))
        turns_may_be_short(value);
    else if ((value = value_of(argument, "trace-limit")))
        options->limit = strtoull(value, NULL, 10);
    else if ((value = value_of(argument, "data-line")))
        data_line_bytes = (unsigned)strtoul(value, NULL, 10);
    else if ((value = value_of(argument, "calls")))
        options->calls = value;
    else if ((value = value_of(argument, "calls-limit")))
        options->calls_limit = strtoull(value, NULL, 10);
    else if (!strcmp(argument, "conflicts=on"))
        conflicts_want();
    else if (!strcmp(argument, "count=off"))
        channel_counting = false;
    else if (!strcmp(argument, "count=now"))
        options->now = true;
    else if (!strcmp(argument, "trace=on"))
        options->trace = true;
    else if (!strcmp(argument, "trace=data")) {
        options->trace = true;
        data_want(&arch);
    } else {
        fprintf(stderr, "kdelta plugin: argument %s not understood\n", argument);
        return false;
    }
    return true;
}

static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 0; i < argc; i++)
        if (!take(argv[i], options))
            return false;
    if (options->symbols && !symbols_load_file(options->symbols))
        return false;
    if (options->trace) {
        trace_want(options->limit);
        at_each_block = count_traced_block;
    }
    if (options->calls) {
        if (!calls_want(options->calls, options->calls_limit, &arch))
            return false;
        at_each_block = count_called_block;
    }
    at_each_block = cpus_callback(at_each_block, count_on_cpu);
    if (!options->rules || !options->out)
        fputs("kdelta plugin: wants out=FILE and rules=FILE\n", stderr);
    return options->rules && options->out;
}

static bool fits(const qemu_info_t *info)
{
    for (size_t i = 0; arches[i]; i++)
        if (!strcmp(arches[i]->target_name, info->target_name))
            arch = *arches[i];
    if (!info->system_emulation || !arch.target_name)
        fprintf(stderr, "kdelta plugin: %s emulation is not supported\n", info->target_name);
    else
        return true;
    return false;
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    struct options options = { .limit = TRACE_LIMIT_ITEMS, .calls_limit = NODES_LIMIT };

    if (!fits(info) || !parse(argc, argv, &options) || !output_open(options.out, &arch))
        return 1;
    plugin = id;
    at_new_cpu(id, turns_begin);
    channel_off = off;
    segment_init();
    task_init();
    halt_init(&arch);
    kinds_init(&arch, output_kind);
    if (options.now) {
        know_kernel();
        start_counting();
        return 0;
    }
    if (channel_counting)
        channel_arm = arm;
    at_translation(id, translate_quiet);
    at_end(id, at_exit);
    return 0;
}
