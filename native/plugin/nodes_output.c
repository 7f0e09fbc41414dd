/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of calls of a region, written. */
#include "nodes.h"

#include "output.h"

static void add_nodes(struct bytes *rows)
{
    for (uint32_t node = 1; node < tree.n_nodes; node++) {
        const struct node *n = &tree.nodes[node];
        const struct cell *entered = tree_entered(node);

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

            if (!(t->entered | t->lost | t->elements | t->mmio) || (e->place & 0xffff) >= c->block->origin->n_groups)
                continue; /* a group that was dropped never was */
            bytes_u32(rows, c->node);
            bytes_u32(rows, c->block->id);
            bytes_u32(rows, context);
            bytes_u32(rows, e->place);
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

/* The blocks that nodes begin in or were called from, besides those that the region touched. */
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
