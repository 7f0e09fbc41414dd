/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of calls of the region, and what was executed as part of each of its nodes. */
#ifndef KDELTA_NODES_H
#define KDELTA_NODES_H

#include "tree.h"

#define NODES_LIMIT (UINT64_C(1) << 21)

struct region;

extern struct tree tree;           /* to look at all of it */
extern LOCAL uint32_t nodes_epoch; /* of cells: one more with each segment */
extern uint32_t nodes_serial;      /* of numbers of nodes: another one when the numbers before are not used any more */

void nodes_want(uint64_t limit);
void nodes_forget(void);
/* The node of that way; with `count` control comes to it now. */
uint32_t node_of(const struct way *way, bool count);
/* A root turns out to be called by another node. */
void node_hang(uint32_t node, const struct way *way);
/* The cell, in the segment under way. */
struct cell *cell_of(uint32_t node, struct block *block);
void cell_touch(struct cell *cell);
struct extra *extra_of(struct cell *cell, uint32_t place);
/* What is waiting belongs to that context. */
void nodes_cut(enum context context);
/* There are so many that it is worth while to look which are alike; and that has been done. */
bool nodes_are_many(void);
void nodes_looked(void);
/* Writes the tree of the region that has ended. all: user code was followed, too. */
void nodes_output(const struct region *region, bool all);

/* The number of each node's program, by the node's number; the caller frees it. */
uint32_t *tree_programs(void);
/* The cell of how often control came to the node, or NULL. */
const struct cell *tree_entered(uint32_t node);
/* All nodes again, the roots of program n as those of to[n]: what is alike then is one. Nothing may be waiting. `kept` is a cell, or NULL,
 * and becomes the one that stands for it.
 */
void tree_renumber(const uint32_t *to, struct cell **kept);

#endif
