/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Units: what a trace is made of. Straight code that ends with a jump, whatever translations it came in.
 *
 * QEMU ends a translation where its budget of instructions does, too, and how much of that is left can depend on the host. So blocks that
 * follow each other without a jump are joined: the same code, executed the same, is the same units in each run.
 */
#ifndef KDELTA_UNIT_H
#define KDELTA_UNIT_H

#include "block.h"

struct unit {
    uint64_t vaddr;
    uint64_t content;      /* hash of its address and bytes: the same in each run, which its number is not */
    uint64_t folded;       /* that hash before its end */
    uint64_t host;         /* where QEMU had its first byte */
    uint32_t bytes, insns;
    uint32_t next_block, joined; /* the block that was last joined to it, and the unit that both are */
};

extern struct unit *units; /* by number; 0 is none */

/* The block's own unit: when it is translated, and when its end turns out to be another. */
void unit_place(struct block *b);
uint32_t unit_join(uint32_t unit, const struct block *b);
uint32_t unit_count(void);

#endif
