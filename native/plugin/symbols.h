/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses in the kernel that matter to the counting, found by the rules of an architecture in /proc/kallsyms text. */
#ifndef KDELTA_SYMBOLS_H
#define KDELTA_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event {
    EVENT_NONE,
    EVENT_FORKED,   /* the running task made another */
    EVENT_STARTS,   /* first function of a new task */
    EVENT_RESUMES,  /* a task goes on after a switch */
    EVENT_EXITS,    /* the running task runs no more */
    EVENT_IDLES,    /* the running task is the idle task */
    EVENT_SIGNALLED, /* the running task takes a signal, whatever brought it into the kernel */
    EVENT_IS_INTERRUPT, /* what entered the kernel by the entry for everything was an interrupt */
    EVENT_EXECS,    /* the running task becomes another program */
    EVENT_HANDLES,  /* it will be in a signal's handler when it is back in user code */
    EVENT_SIGRETURN, /* and no longer in one: a system call, too */
    EVENT_SYSTEM_CALL, /* the function of a system call begins */
};

/* Reads the rules file; returns false and says why on stderr when it cannot. */
bool rules_load(const char *path);
void symbols_load(const char *kallsyms, size_t size);
bool symbols_load_file(const char *path);
bool symbols_known(void);
/* Where the kernel has a variable of that name; stays as it is where it has none. Before symbols are loaded; for MOST_WANTED names. */
#define MOST_WANTED 8
void symbols_want(const char *name, uint64_t *vaddr);
/* The kernel's image, from its text on; to the end of what comes before its data where no symbol tells its own. */
bool symbols_image(uint64_t *start, uint64_t *end);

uint16_t symbols_flags_at(uint64_t vaddr); /* enum block_flags that follow from the address */
enum event symbols_event_at(uint64_t vaddr);
bool symbols_in_switch(uint64_t vaddr);
bool symbols_in_return_text(uint64_t vaddr);

#endif
