/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where control goes: from a block to the next, and from a task to another. */
#ifndef KDELTA_FOLLOW_H
#define KDELTA_FOLLOW_H

#include "stack.h"

struct followed;

/* Why there is more to do at a block than the one before says. */
enum change {
    LEFT_EARLY = 1,          /* that one did not come to its end */
    ENTERED = 2,             /* this one is the entry of an exception or interrupt */
    RETURNED = 4,            /* or what went on after one */
    SYSTEM_CALL_BEGINS = 8,  /* this one is the begin of a system call's function */
};

struct calls {
    struct link *last;       /* the block under way */
    struct cell *cell;       /* and where it is counted; NULL outside of regions */
    uint64_t key;            /* of the node under way */
    uint32_t node;           /* NO_NODE outside of regions */
    unsigned changed;        /* enum change */
    unsigned left_after;     /* the group, if it was left early */
    uint64_t slot;           /* where the last call stored its return address, or a return read it */
    struct pending resumed;  /* what an interrupt came between */
    bool all;
    const struct arch *arch;
};

extern LOCAL struct calls calls;

void follow_init(void);
void follow_begin(void);
/* The block comes after another one, in a way that may lead to another node. */
void follow(struct block *b, const struct link *last);
void follow_return(unsigned depth);
/* Another CPU executes; and that one does. */
void follow_stopped(unsigned cpu);
void follow_goes_on(unsigned cpu);
/* Events of tasks: listener.h says what each is. A task's note is the number of its program. */
void follow_forked(uint32_t *note);
void follow_started(uint32_t program);
void follow_switched(struct followed **from, struct followed **to, bool is_new, const struct site *site);
void follow_event(uint16_t event);
void follow_entered(struct block *entry, unsigned depth, bool interrupt);
void follow_is_interrupt(void);
void follow_no_interrupts(void);
/* What is on top, after any change. */
void follow_place(void);
/* The node in which code like that block's is executed by the running task. */
uint32_t follow_node_of(const struct block *b);

#endif
