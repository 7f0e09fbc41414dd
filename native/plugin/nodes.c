/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes and cells in tables by what tells them apart. Memory is bounded by the limit on nodes. */
#include "nodes.h"

#include "arena.h"
#include "output.h"

#define MOST_DEPTH 512u
#define CELLS_A_NODE 8u      /* the limit on cells, as a multiple of that on nodes */
#define LEAST_SLOTS (1u << 14)

struct node {
    struct way way;
    struct cell *entered;
    uint32_t depth;
};

struct table {
    uint32_t *slots;         /* open-addressed: number, 0 is empty */
    size_t n_slots;
};

static struct {
    uint64_t limit, folded;  /* folded: calls below a node that were not told apart */
    struct node *nodes;      /* by number; 0 is none */
    uint32_t n_nodes, nodes_capacity;
    struct cell **cells;     /* by number, from 1 on */
    uint32_t n_cells, cells_capacity;
    struct table by_way, by_place;
    struct cell **touched;   /* in this segment */
    size_t n_touched, touched_capacity;
    struct arena arena;
} tree;

uint32_t nodes_epoch = 1;

void nodes_want(uint64_t limit)
{
    tree.limit = limit < UINT32_MAX / (2 * CELLS_A_NODE) ? limit : UINT32_MAX / (2 * CELLS_A_NODE);
}

bool nodes_wanted(void)
{
    return tree.limit;
}

static void table_reset(struct table *t, size_t n)
{
    free(t->slots);
    t->n_slots = n;
    t->slots = zalloc(n, sizeof *t->slots);
}

void nodes_forget(void)
{
    arena_free(&tree.arena);
    free(tree.nodes);
    free(tree.cells);
    tree.nodes = NULL;
    tree.cells = NULL;
    tree.nodes_capacity = tree.cells_capacity = tree.n_cells = 0;
    tree.n_nodes = 1;
    tree.n_touched = 0;
    tree.folded = 0;
    table_reset(&tree.by_way, LEAST_SLOTS);
    table_reset(&tree.by_place, LEAST_SLOTS);
    nodes_epoch++;
}

static uint64_t hash_of_way(const struct way *w)
{
    uint64_t h = mixed((uint64_t)w->parent << 32 | w->task);

    return mixed(h ^ mixed(w->site + w->entry) ^ (w->block ? w->block->origin->vaddr : 0));
}

static bool is_same_way(const struct way *a, const struct way *b)
{
    return a->parent == b->parent && a->site == b->site && a->task == b->task && a->entry == b->entry &&
           a->site_is_return == b->site_is_return && !a->block == !b->block &&
           (!a->block || a->block->origin->vaddr == b->block->origin->vaddr);
}

static size_t slot_of_way(const struct way *way)
{
    size_t mask = tree.by_way.n_slots - 1, i = hash_of_way(way) & mask;

    while (tree.by_way.slots[i] && !is_same_way(&tree.nodes[tree.by_way.slots[i]].way, way))
        i = (i + 1) & mask;
    return i;
}

static void more_ways(void)
{
    table_reset(&tree.by_way, 2 * tree.by_way.n_slots);
    for (uint32_t node = 1; node < tree.n_nodes; node++)
        tree.by_way.slots[slot_of_way(&tree.nodes[node].way)] = node;
}

static void node_entered(uint32_t node)
{
    struct node *n = &tree.nodes[node];

    if (!n->entered || n->entered->epoch != nodes_epoch)
        n->entered = cell_of(node, NULL);
    n->entered->n++;
}

static uint32_t node_new(const struct way *way, size_t slot)
{
    if (tree.n_nodes == tree.nodes_capacity || !tree.nodes) {
        tree.nodes_capacity = tree.nodes_capacity ? 2 * tree.nodes_capacity : 4096;
        tree.nodes = must(realloc(tree.nodes, tree.nodes_capacity * sizeof *tree.nodes));
    }
    uint32_t node = tree.n_nodes++;

    tree.nodes[node] = (struct node){ .way = *way, .depth = way->parent ? tree.nodes[way->parent].depth + 1 : 0 };
    tree.by_way.slots[slot] = node;
    if (2 * tree.n_nodes > tree.by_way.n_slots)
        more_ways();
    return node;
}

/* Whether what is called below has no nodes of its own. */
static bool is_full(uint32_t parent)
{
    return tree.n_nodes > tree.limit || (parent && tree.nodes[parent].depth >= MOST_DEPTH);
}

/* Roots are always made: there is one a task, and one an entry of interrupts. */
static uint32_t node_found(const struct way *way)
{
    size_t slot = slot_of_way(way);

    if (tree.by_way.slots[slot])
        return tree.by_way.slots[slot];
    if (!way->parent || way->entry == ENTRY_FOLDED || !is_full(way->parent))
        return node_new(way, slot);
    struct way folded = { .parent = way->parent, .entry = ENTRY_FOLDED };

    tree.folded++;
    return node_found(&folded);
}

uint32_t node_of(const struct way *way, bool count)
{
    if (way->parent && tree.nodes[way->parent].way.entry == ENTRY_FOLDED) {
        tree.folded += count;
        return way->parent;
    }
    uint32_t node = node_found(way);

    if (count)
        node_entered(node);
    return node;
}

void node_hang(uint32_t node, const struct way *way)
{
    struct node *n = &tree.nodes[node];
    size_t slot;

    n->way.parent = way->parent;
    n->way.entry = way->entry;
    n->way.site = way->site;
    n->way.site_block = way->site_block;
    n->way.site_is_return = way->site_is_return;
    n->way.task = 0;
    slot = slot_of_way(&n->way);
    if (!tree.by_way.slots[slot]) /* otherwise there are two alike, which are one for the reader */
        tree.by_way.slots[slot] = node;
}

static size_t slot_of_cell(uint32_t node, const struct block *block)
{
    size_t mask = tree.by_place.n_slots - 1;
    size_t i = mixed((uint64_t)node << 32 | (block ? block->id + 1 : 0)) & mask;

    for (; tree.by_place.slots[i]; i = (i + 1) & mask) {
        const struct cell *c = tree.cells[tree.by_place.slots[i]];

        if (c->node == node && c->block == block)
            break;
    }
    return i;
}

static void more_places(void)
{
    table_reset(&tree.by_place, 2 * tree.by_place.n_slots);
    for (uint32_t i = 1; i <= tree.n_cells; i++)
        tree.by_place.slots[slot_of_cell(tree.cells[i]->node, tree.cells[i]->block)] = i;
}

static struct cell *cell_new(uint32_t node, struct block *block, size_t slot)
{
    if (tree.n_cells + 1 >= tree.cells_capacity) {
        tree.cells_capacity = tree.cells_capacity ? 2 * tree.cells_capacity : 1 << 14;
        tree.cells = must(realloc(tree.cells, tree.cells_capacity * sizeof *tree.cells));
    }
    struct cell *c = arena_take(&tree.arena, sizeof *c);

    c->node = node;
    c->block = block;
    tree.cells[++tree.n_cells] = c;
    tree.by_place.slots[slot] = tree.n_cells;
    if (2 * tree.n_cells > tree.by_place.n_slots)
        more_places();
    return c;
}

static void touch(struct cell *c)
{
    c->epoch = nodes_epoch;
    if (tree.n_touched == tree.touched_capacity) {
        tree.touched_capacity = tree.touched_capacity ? 2 * tree.touched_capacity : 4096;
        tree.touched = must(realloc(tree.touched, tree.touched_capacity * sizeof *tree.touched));
    }
    tree.touched[tree.n_touched++] = c;
}

/* When there are too many, what is executed as part of a node is put down to where its task began. */
static uint32_t root_of(uint32_t node)
{
    while (tree.nodes[node].way.parent)
        node = tree.nodes[node].way.parent;
    return node;
}

struct cell *cell_of(uint32_t node, struct block *block)
{
    size_t slot = slot_of_cell(node, block);

    if (!tree.by_place.slots[slot] && block && tree.n_cells > CELLS_A_NODE * tree.limit) {
        node = root_of(node);
        slot = slot_of_cell(node, block);
        tree.folded++;
    }
    uint32_t found = tree.by_place.slots[slot];
    struct cell *c = found ? tree.cells[found] : cell_new(node, block, slot);

    if (c->epoch != nodes_epoch)
        touch(c);
    return c;
}

struct extra *extra_of(struct cell *cell, uint16_t group)
{
    struct extra *e = cell->extras;

    if (cell->epoch != nodes_epoch)
        touch(cell);
    while (e && e->group != group)
        e = e->next;
    if (!e) {
        e = arena_take(&tree.arena, sizeof *e);
        e->group = group;
        e->next = cell->extras;
        cell->extras = e;
    }
    return e;
}

static void add(struct tally *sum, struct tally *waiting)
{
    sum->entered += waiting->entered;
    sum->lost += waiting->lost;
    sum->elements += waiting->elements;
    sum->mmio += waiting->mmio;
    *waiting = (struct tally){ 0 };
}

void nodes_cut(enum context context)
{
    for (size_t i = 0; i < tree.n_touched; i++) {
        struct cell *c = tree.touched[i];

        c->sum[context] += c->n;
        c->n = 0;
        for (struct extra *e = c->extras; e; e = e->next)
            add(&e->sum[context], &e->waiting);
    }
    tree.n_touched = 0;
    nodes_epoch++;
}

static void add_nodes(struct bytes *rows)
{
    for (uint32_t node = 1; node < tree.n_nodes; node++) {
        const struct node *n = &tree.nodes[node];
        size_t slot = slot_of_cell(node, NULL);
        const struct cell *entered = tree.by_place.slots[slot] ? tree.cells[tree.by_place.slots[slot]] : NULL;

        bytes_u64(rows, n->way.site);
        bytes_u32(rows, n->way.parent);
        bytes_u32(rows, n->way.task);
        bytes_u32(rows, n->way.block ? n->way.block->id : UINT32_MAX);
        bytes_u32(rows, n->way.site_block ? n->way.site_block->id : UINT32_MAX);
        bytes_u32(rows, n->way.entry);
        bytes_u32(rows, n->way.site_is_return);
        for (int context = 0; context < CONTEXTS; context++)
            bytes_u64(rows, entered ? entered->sum[context] : 0);
    }
}

/* Returns how many. */
static uint64_t add_cells(struct bytes *rows)
{
    uint64_t n = 0;

    for (uint32_t i = 1; i <= tree.n_cells; i++) {
        const struct cell *c = tree.cells[i];

        for (uint32_t context = 0; c->block && context < CONTEXTS; context++) {
            if (!c->sum[context])
                continue;
            bytes_u64(rows, c->sum[context]);
            bytes_u32(rows, c->node);
            bytes_u32(rows, c->block->id);
            bytes_u32(rows, context);
            bytes_u32(rows, 0);
            n++;
        }
    }
    return n;
}

static uint64_t add_extras_of(struct bytes *rows, const struct cell *c)
{
    uint64_t n = 0;

    for (const struct extra *e = c->extras; e; e = e->next)
        for (uint32_t context = 0; context < CONTEXTS; context++) {
            const struct tally *t = &e->sum[context];

            if (!(t->entered | t->lost | t->elements | t->mmio) || e->group >= c->block->origin->n_groups)
                continue; /* a group that was dropped never was */
            bytes_u32(rows, c->node);
            bytes_u32(rows, c->block->id);
            bytes_u32(rows, context);
            bytes_u32(rows, e->group);
            bytes_add(rows, t, sizeof *t);
            n++;
        }
    return n;
}

static void say_folded(const struct region *region)
{
    char line[sizeof region->name + 96];

    snprintf(line, sizeof line, "the tree of calls of region %s has as many nodes as it may: calls put together",
             region->name);
    output_warning(line, tree.folded);
}

/* The blocks that nodes begin in or were called from, beside those that the region touched. */
static void define_blocks(struct bytes *blocks)
{
    for (uint32_t node = 1; node < tree.n_nodes; node++) {
        const struct way *w = &tree.nodes[node].way;

        if (w->block)
            output_define(blocks, w->block);
        if (w->site_block)
            output_define(blocks, w->site_block);
    }
}

static void add_shapes(struct bytes *rows, const struct region *region)
{
    for (size_t i = 0; i < region->n_blocks; i++) {
        const struct block *b = region->blocks[i];

        bytes_u32(rows, b->id);
        bytes_u32(rows, b->insns);
        bytes_add(rows, b->origin->shapes, b->insns * sizeof *b->origin->shapes);
    }
}

void nodes_output(const struct region *region, bool all)
{
    struct bytes head = { 0 }, nodes = { 0 }, cells = { 0 }, extras = { 0 }, shapes = { 0 }, blocks = { 0 };
    uint32_t length = (uint32_t)strlen(region->name);
    uint64_t n_cells = add_cells(&cells), n_extras = 0;

    for (uint32_t i = 1; i <= tree.n_cells; i++)
        if (tree.cells[i]->block)
            n_extras += add_extras_of(&extras, tree.cells[i]);
    if (tree.folded)
        say_folded(region);
    define_blocks(&blocks);
    add_nodes(&nodes);
    add_shapes(&shapes, region);
    bytes_u32(&head, all);
    bytes_u32(&head, length);
    bytes_u64(&head, region->n_iterations + region->iterations_lost);
    bytes_u64(&head, tree.n_nodes - 1);
    bytes_u64(&head, n_cells);
    bytes_u64(&head, n_extras);
    bytes_u64(&head, region->n_blocks);
    bytes_add(&head, region->name, length);
    const struct part parts[] = {
        { head.data, head.size },   { nodes.data, nodes.size },   { cells.data, cells.size },
        { extras.data, extras.size }, { shapes.data, shapes.size },
    };

    output_blocks(&blocks);
    output_parts("CALL", parts, sizeof parts / sizeof *parts);
    free(head.data);
    free(nodes.data);
    free(cells.data);
    free(extras.data);
    free(shapes.data);
    free(blocks.data);
}
