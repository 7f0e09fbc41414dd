/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of special instructions by which register, port or device they are for, and how often each was executed. */
#ifndef KDELTA_KINDS_H
#define KDELTA_KINDS_H

#include "block.h"
#include "qemu_api.h"

/* Of one group's last instruction, those of one kind. */
struct kind_count {
    struct kind_count *next;
    uint64_t detail;
    uint64_t n, flushed;    /* since power-on, as the counters of groups */
    uint64_t sum[CONTEXTS]; /* of the region that is active */
    uint8_t kind;
};

/* `report` gets the name of each kind that no instruction was of before. */
void kinds_init(const struct arch *arch, void (*report)(const char *name));
/* The kind as the file of counts has it: what of it the instruction's bytes say. 0 if each execution says it, by registers. */
uint8_t kinds_by_bytes(const struct insn_facts *facts);
/* Has that instruction's registers read whenever it is executed, if they say what it is and can be read. */
void kinds_watch(struct qemu_plugin_insn *insn, struct group *g);
/* An access to the device at that address by the block's first group; false if there are too many kinds. */
bool kinds_device(struct block *b, const struct qemu_plugin_hwaddr *address, bool is_store);
/* What the group counted last was no execution; with 1 it was one after all. */
void kinds_take_back(struct block *b, unsigned group, int times);
/* What was counted since the last time belongs to that context; with `sum` to the region. */
void kinds_flush(struct group *g, enum context context, bool sum);
void kinds_forget(struct group *g);

#endif
