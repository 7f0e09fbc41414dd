/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stacks of a task, and the nodes of their frames. */
#ifndef KDELTA_FRAMES_H
#define KDELTA_FRAMES_H

#include "segment.h"
#include "stack.h"

#define MOST_ENTRIES 64u

struct followed {
    struct stack kernel, *user;
    struct stack **others;              /* user stacks that are not in use; the one left last at the end */
    uint32_t n_others, number;          /* number: of the program that it executes, which forks share */
    uint32_t handlers;                  /* of signals that are to be entered */
    bool sigreturn, ended;
    struct pending waiting;             /* of user code, which has been left meanwhile */
    uint32_t at_entry[MOST_ENTRIES];    /* frames of the kernel below each exception and interrupt */
    struct followed *next;              /* of all that there are */
};

extern struct followed *task;           /* the running one */

bool in_region(void);
struct stack *new_stack(void);
uint32_t node_on_top(const struct stack *s);
/* In a region that these frames do not know, when nodes have other numbers, or a frame has changed: nodes from that frame on. */
void renew(struct stack *s, uint32_t from);
void renew_task(void);
void push(struct stack *s, const struct frame *frame);
void push_root(struct stack *s, struct block *b);
/* The block is where the root returns to: a caller that was not known. */
void new_root(struct stack *s, struct block *b);

/* Calls and returns of user code. */
void user_calls(const struct frame *f);
void user_returns(const struct pending *p, struct block *b);

#endif
