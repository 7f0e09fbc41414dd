/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the generated functions see: their type, and the data. */
#ifndef KDELTA_CALIBRATION_DATA_H
#define KDELTA_CALIBRATION_DATA_H

#include <stdint.h>

typedef unsigned long word;
typedef word function(word a, uint32_t r);

/* Where copies of an object refer to them, so that no copy has its own. */
extern char *data;
extern uint32_t data_mask;

#define LOAD(index)         (*(const word *)(data + ((index) & data_mask)))
#define STORE(index, value) (*(word *)(data + ((index) & data_mask)) = (value))
/* The compiler must take no select for a branch. */
#define ARM_OF_BRANCH(variable) __asm__ volatile("" : "+r"(variable))

#endif
