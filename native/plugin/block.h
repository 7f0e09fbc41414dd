/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks: stretches of code as QEMU translated them, with the counters that the guest's execution moves.
 *
 * A block is (address, bytes). It is cut into groups, each of which ends at an instruction that can fault, is special or is a mark.
 * Only the last instruction of a group can leave the block early, so one counter a group says exactly what was executed.
 */
#ifndef KDELTA_BLOCK_H
#define KDELTA_BLOCK_H

#include "arch.h"

enum context { OWN, INTERRUPTS, OTHER, CONTEXTS };

/* Moved by inline additions in the translated code, and never set back. */
struct live {
    uint64_t entered;  /* times that the group's first instruction started */
    uint64_t accesses; /* loads and stores that were made */
    uint64_t filtered; /* those for which QEMU's filter says "load"; see live_loads */
};

struct tally {
    uint64_t entered;
    uint64_t loads, stores;
    uint64_t lost;  /* attempts of the last instruction that faulted: not executed */
    uint64_t again; /* further iterations of a string operation */
    uint64_t mmio;  /* accesses of device memory */
};

struct group {
    uint64_t left; /* times the block was left after this group */
    uint64_t lost, again, mmio; /* since power-on, as live */
    struct tally flushed;       /* what was already added to a sum */
    struct tally sum[CONTEXTS]; /* of the region that is active */
    uint16_t insns;
    struct insn_facts last;     /* of the group's last instruction */
    uint64_t last_vaddr, end_vaddr;
};

/* QEMU 7.2 tests the filter of a memory callback against the wrong bits: what is registered for loads sees the stores of
 * translated code, though the loads of helpers. Whether this QEMU does so is found out by the first load of the channel. */
extern bool load_filter_works;

static inline uint64_t live_loads(const struct live *live, const struct insn_facts *last)
{
    return load_filter_works || last->by_helper ? live->filtered : live->accesses - live->filtered;
}

enum block_flags {
    AT_INTERRUPT = 1 << 0,  /* entry of an interrupt */
    AT_EXCEPTION = 1 << 1,  /* entry of an exception */
    AT_FAULT = 1 << 2,      /* of one whose instruction was not executed */
    AT_EVENT = 1 << 3,      /* entry of a function that the task watch wants to see */
    ENDS_FRAME = 1 << 4,    /* ends with the return from an interrupt or exception */
    ENDS_STRING = 1 << 5,   /* ends with a string operation that repeats */
};

struct block {
    uint64_t vaddr;
    uint64_t entered;      /* complete executions, and the one under way */
    uint64_t *tail;        /* the last group's live.entered: equal unless left early */
    uint64_t insns;
    struct live *live;     /* one a group */
    struct group *groups;
    uint32_t epoch;        /* of the segment in which it was last touched */
    uint16_t n_groups;
    uint16_t flags;
    uint16_t event;
    bool user;
    bool doubtful;         /* QEMU may have left the last instruction out */
    bool in_region, defined;
    uint32_t id;
    uint32_t n_bytes;
    uint8_t *bytes;
    struct block *next;    /* in its hash chain */
};

struct qemu_plugin_tb;

/* The block of a translation; the same one each time for the same address, bytes and cut. */
struct block *block_of(const struct qemu_plugin_tb *tb, const struct arch *arch);
uint16_t block_group_at(const struct block *b, size_t insn_index);
uint32_t block_count(void);

/* From power-on: which code was ever translated. */
void seen_add(uint64_t vaddr, uint32_t size);
size_t seen_count(void);
void seen_each(void (*visit)(uint64_t vaddr, uint32_t size, void *data), void *data);

#endif
