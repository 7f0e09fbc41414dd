/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a tree of calls is made of, for those who look at all of it. */
#ifndef KDELTA_TREE_H
#define KDELTA_TREE_H

#include "arena.h"
#include "nodes.h"

struct node {
    struct way way;
    struct cell *entered;
    uint32_t depth;
};

/* Open-addressed tables: of nodes by their number, 0 is empty; of cells by node and block, which `key` says at once. */
struct ways {
    uint32_t *slots;
    size_t n_slots;
};

struct place {
    uint64_t key;
    struct cell *cell;       /* or NULL */
};

struct places {
    struct place *slots;
    size_t n_slots;
    unsigned shift;          /* of a hash: its highest bits count */
};

struct tree {
    uint64_t limit, folded;  /* folded: calls below a node that were not distinguished */
    struct node *nodes;      /* by number; 0 is none */
    uint32_t n_nodes, nodes_capacity;
    struct cell **cells;     /* by number, from 1 on, in the order in which they were first executed */
    uint32_t n_cells, cells_capacity;
    uint32_t many_nodes, many_cells; /* from which on it is worth while to look what is alike */
    struct ways by_way;
    struct places by_place;
    struct cell **touched;   /* in this segment */
    size_t n_touched, touched_capacity;
    struct arena arena;
};

extern struct tree tree;

/* The number of each node's program, by the node's number; the caller frees it. */
uint32_t *tree_programs(void);
/* The cell of how often control came to the node, or NULL. */
const struct cell *tree_entered(uint32_t node);
/* All nodes again, the roots of program n as those of to[n]: what is alike then is one. Nothing may be waiting. `kept` is a cell, or NULL,
 * and becomes the one that stands for it.
 */
void tree_renumber(const uint32_t *to, struct cell **kept);

#endif
