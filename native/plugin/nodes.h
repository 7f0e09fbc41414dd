/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of calls of a region, and what was executed as part of each of its nodes.
 *
 * A cell is a block as part of a node: how often it was entered there. What is not as of the whole block (groups that were not reached,
 * attempts that faulted, elements of string operations) is kept next to it, by group. So the sum over all nodes is what the groups counted
 * alone, which the reader checks.
 */
#ifndef KDELTA_NODES_H
#define KDELTA_NODES_H

#include "count.h"

#define NO_NODE 0u
#define NODES_LIMIT (UINT64_C(1) << 21)

/* How control came to a node: as Entry in counts/profile.py, which knows TAIL, too. */
enum entry { ENTRY_ROOT, ENTRY_CALL, ENTRY_SYSCALL = 3, ENTRY_EXCEPTION, ENTRY_INTERRUPT, ENTRY_SIGNAL, ENTRY_FOLDED };

/* Of one group in a cell, what differs from the whole block. Negative numbers wrap around. */
struct extra {
    struct extra *next;
    struct tally waiting;       /* in the segment under way */
    struct tally sum[CONTEXTS];
    uint16_t group;
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

extern uint32_t nodes_epoch;    /* of cells: one more with each segment */
extern uint32_t nodes_serial;   /* of numbers of nodes: another one when the numbers before are not used any more */

void nodes_want(uint64_t limit);
bool nodes_wanted(void);
void nodes_forget(void);
/* The node of that way; with `count` control comes to it now. */
uint32_t node_of(const struct way *way, bool count);
/* A root turns out to be called by another node. */
void node_hang(uint32_t node, const struct way *way);
/* The cell, in the segment under way. */
struct cell *cell_of(uint32_t node, struct block *block);
void cell_touch(struct cell *cell);
struct extra *extra_of(struct cell *cell, uint16_t group);
/* What is waiting belongs to that context. */
void nodes_cut(enum context context);
/* There are so many that it is worth while to look which are alike; and that has been done. */
bool nodes_are_many(void);
void nodes_looked(void);
/* Writes the tree of the region that has ended. all: user code was followed, too. */
void nodes_output(const struct region *region, bool all);

#endif
