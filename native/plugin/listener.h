/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the core reports to its listeners: calls, traces, a simulated cache. The core counts the same without any. */
#ifndef KDELTA_LISTENER_H
#define KDELTA_LISTENER_H

#include "block.h"

struct region;
struct followed; /* what a listener keeps with a task */

/* An event that a listener does not need is NULL. */
struct listener {
    /* Of blocks. */
    void (*translated)(struct block *b);
    void (*dropped)(struct block *b);                          /* its last group turned out to be none */
    void (*left)(struct block *b, unsigned group, int times);  /* the groups after that one were not reached; -1: they were */
    void (*lost)(struct block *b, unsigned group, int times);  /* an attempt failed; -1: it did not */
    void (*device)(struct block *b);                           /* it accessed a device */
    void (*kind)(struct block *b, unsigned group, uint8_t kind, int times); /* the group's last instruction is of that kind; -1: it was not */

    /* Of regions, and of segments, whose context is known when they end. */
    void (*begin)(const struct site *site);
    void (*cut)(enum context context);                         /* what was executed since the last cut was in that context */
    void (*leave)(const struct site *site, unsigned group);    /* the block's groups from that one on come later */
    void (*resume)(const struct site *site, unsigned group);   /* they come now */
    void (*end)(const struct site *site);
    void (*output)(const struct region *region);
    void (*forget)(void);

    /* Of CPUs, where there are several; a segment has been closed. */
    void (*stopped)(unsigned cpu);                             /* another one executes next */
    void (*goes_on)(unsigned cpu);

    /* Of tasks. */
    void (*forked)(uint32_t *note);                            /* the running task makes another one, which gets the note */
    void (*started)(uint32_t note);                            /* who the running task is, is known by now; 0: one without a note */
    void (*switched)(struct followed **from, struct followed **to, bool is_new, const struct site *site);
    void (*event)(uint16_t event);                             /* an exec, a signal's handler, the return from one, the task's end */
    void (*entered)(struct block *entry, unsigned depth, bool interrupt);
    void (*returned)(unsigned depth, bool segment, enum context resumed);
    void (*is_interrupt)(void);                                /* what was entered last was an interrupt */
    void (*no_interrupts)(void);                               /* those on this stack go on as the task's own work */
};

#define MOST_LISTENERS 3

extern const struct listener *listeners[MOST_LISTENERS + 1]; /* in the order of their events; NULL ends them */

void listener_add(const struct listener *listener);

#define REPORT(what, ...) \
    do { \
        for (const struct listener **l_ = listeners; *l_; l_++) \
            if ((*l_)->what) \
                (*l_)->what(__VA_ARGS__); \
    } while (0)

#endif
