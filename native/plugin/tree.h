/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a tree of calls is made of.
 *
 * A cell is a block as part of a node: how often it was entered there. What is not as of the whole block (groups that were not reached,
 * attempts that faulted, elements of string operations) is kept next to it, by group. So the sum over all nodes is what the groups counted
 * alone, which the reader checks.
 */
#ifndef KDELTA_TREE_H
#define KDELTA_TREE_H

#include "arena.h"
#include "block.h"

#define NO_NODE 0u

/* How control came to a node: as Entry in counts/profile.py, which knows TAIL, too. */
enum entry { ENTRY_ROOT, ENTRY_CALL, ENTRY_SYSCALL = 3, ENTRY_EXCEPTION, ENTRY_INTERRUPT, ENTRY_SIGNAL, ENTRY_FOLDED };

/* Of one group in a cell, what differs from the whole block. Negative numbers wrap around. */
struct extra {
    struct extra *next;
    struct tally waiting;       /* in the segment under way */
    struct tally sum[CONTEXTS];
    uint32_t place; /* the group, and from bit 24 on the kind of which it counts as `entered` its last instruction; 0: of all that it counts */
};

struct cell {
    uint64_t n;                 /* entries in the segment under way */
    struct block *block;        /* NULL: of the node itself, how often control came to it */
    uint32_t node, epoch;
    struct cell *next;          /* what was counted after it the last time: as a rule, the next time, too */
    uint64_t sum[CONTEXTS];
    struct extra *extras;
};

/* How a node was entered, which is what tells it from others. */
struct way {
    uint32_t parent, task;      /* the task's number; of a root only */
    enum entry entry;
    struct block *block;        /* that was entered; by its address */
    struct block *site_block;   /* from which; or NULL */
    uint64_t site;              /* address of the instruction there, or 0 */
    bool site_is_return;        /* the address after that instruction: it itself was not seen */
};

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

#endif
