/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks: stretches of code as QEMU translated them, with the counters that the guest's execution moves.
 *
 * A block is (address, bytes). It is cut into groups, each of which ends at an instruction that can fault, is special or is a mark.
 * Only the last instruction of a group can leave the block early, so one counter a group says exactly what was executed.
 */
#ifndef KDELTA_BLOCK_H
#define KDELTA_BLOCK_H

#include "arch.h"
#include "cpus.h"

enum context { OWN, INTERRUPTS, OTHER, CONTEXTS };

struct tally {
    uint64_t entered; /* times that the group's first instruction started */
    uint64_t lost;    /* attempts of the last instruction that faulted: not executed */
    uint64_t elements; /* that its string operation has read, written or moved */
    uint64_t mmio;    /* accesses of device memory */
};

/* Where in a block something happens. */
struct site {
    struct block *block;
    uint16_t group;
    enum mark mark;
};

/* What is seldom needed of a group. */
struct group {
    uint64_t left;                      /* times the block was left after this group */
    uint64_t lost, elements, mmio;      /* since power-on, as the counter of its entries */
    uint64_t accessed_at;               /* entries when the last instruction's access was last made (user code only) */
    struct tally flushed;               /* what was already added to a sum */
    struct tally sum[CONTEXTS];         /* of the region that is active */
    uint16_t insns;
    uint16_t inner_loads, inner_stores; /* of the instructions before the last */
    struct insn_facts last;             /* of the group's last instruction */
    struct site site;
    uint64_t last_vaddr, end_vaddr;
    uint64_t told_entered, told_elements; /* of these, what nodes were already told */
    struct kind_count *kinds, *kind;    /* which of its kind the last instruction was, each time; and the last time. NULL: none */
};

enum block_flags {
    AT_INTERRUPT = 1 << 0,  /* entry of an interrupt */
    AT_EXCEPTION = 1 << 1,  /* entry of an exception */
    AT_FAULT = 1 << 2,      /* of one whose instruction was not executed */
    AT_PAGE_FAULT = 1 << 5, /* of one of those, by an access to memory or by the fetch of an instruction */
    AT_ARITHMETIC = 1 << 6, /* of one of those, never by the fetch */
    AT_EVENT = 1 << 3,      /* entry of a function that the task watch wants to see */
    ENDS_FRAME = 1 << 4,    /* ends with the return from an interrupt or exception */
    AT_TRAP = 1 << 7,       /* entry of an exception or of a system call: the instruction before says which */
    AT_EITHER = 1 << 8,     /* or of an interrupt: what follows says which */
    AT_STUB = 1 << 9,       /* in a stub: what goes on at an entry proper after it */
    AT_ENTRY = AT_INTERRUPT | AT_EXCEPTION | AT_FAULT | AT_PAGE_FAULT | AT_EITHER,
};

/* What every execution touches, in one cache line with the counters of the first four groups. */
struct block {
    uint64_t left;         /* times the block was left before its last group */
    struct origin *origin;
    uint32_t epoch;        /* of the segment in which it was last touched */
    uint32_t id, unit;
    uint32_t content;      /* a part of its unit's */
    uint16_t insns;
    uint16_t tail;         /* the last group: its counter is equal to the first's but for `left` */
    uint16_t flags;
    bool user;
    bool straight, waits;  /* it does not end with a jump; its unit is known only when the next block is */
    uint8_t head;          /* what the callback adds to the first counter: nothing where a mark has to come first */
    uint64_t live[];       /* one a group: moved by additions in the translated code, never set back */
};

/* What an instruction is, for those who look at each. */
struct shape {
    uint8_t bytes, loads, stores;
};

struct link;

/* What is seldom needed of a block. */
struct origin {
    uint64_t vaddr;
    struct group *groups;
    uint8_t *bytes;
    uint64_t host;         /* where QEMU had its first byte */
    uint32_t n_bytes;
    uint16_t n_groups;
    uint16_t event;
    bool doubtful;         /* QEMU may have left the last instruction out */
    bool in_region, defined;
    struct block *next;    /* in its hash chain */
    struct shape *shapes;  /* one an instruction */
    struct link *link;     /* if calls are followed */
};

/* A string operation that repeats is a block of its own from its second iteration on, once an iteration. In the kernel such blocks
 * are counted by additions in the translated code alone, where there is one CPU. */
static inline bool is_silent(const struct block *b)
{
    return n_cpus == 1 && !b->user && b->insns == 1 && b->origin->groups[0].last.repeats;
}

struct qemu_plugin_tb;

/* The block of a translation; the same one each time for the same address, bytes and cut. */
struct block *block_of(const struct qemu_plugin_tb *tb, const struct arch *arch, const struct insn *insns);
struct block *block_dummy(void);
/* The instructions of a block's groups from that one on. */
uint64_t insns_from(const struct block *b, unsigned group);

/* From power-on: which code was ever translated. */
void seen_add(uint64_t vaddr, uint32_t size);
size_t seen_count(void);
void seen_each(void (*visit)(uint64_t vaddr, uint32_t size, void *data), void *data);

#endif
