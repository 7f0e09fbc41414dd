/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs have numbers: one more with each exec. Those of which all code that was executed is the same are one in a tree of calls. */
#ifndef KDELTA_PROGRAMS_H
#define KDELTA_PROGRAMS_H

#include "tree.h"

struct followed;

uint32_t program_new(void);
/* Tasks that were made, and have not started, keep their program as one that goes on. */
void program_forks(uint32_t number);
void program_starts(uint32_t number);
/* A task that executes some program, from now on. */
void programs_watch(struct followed *f);
/* Puts together what is alike: of programs that have ended, or of all, when there is no more to come. `kept` as in tree_renumber. */
void programs_merge(bool all, struct cell **kept);

#endif
