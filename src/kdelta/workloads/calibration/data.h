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
/* Operations that wait for none of those around them, of different lengths where the instruction set has such, and a jump over some bytes
 * that nothing executes: a core can do as many in a cycle as it is given. The constant has 8 bits, the highest of them set: x86 needs 32
 * bits for it. */
#if defined(__x86_64__)
#define SHORT_ADD(to, other)   __asm__ volatile("add %k1, %k0" : "+r"(to) : "r"(other))
#define ADD(to, other)         __asm__ volatile("add %1, %0" : "+r"(to) : "r"(other))
#define LONG_ADD(to, constant) __asm__ volatile("add %1, %0" : "+r"(to) : "i"(constant))
#define JUMP                   "jmp"
#else
#define ADD(to, other)         __asm__ volatile("add %0, %0, %1" : "+r"(to) : "r"(other))
#define SHORT_ADD(to, other)   ADD(to, other)
#define LONG_ADD(to, constant) __asm__ volatile("add %0, %0, %1" : "+r"(to) : "i"(constant))
#if defined(__riscv)
#define JUMP "j"
#else
#define JUMP "b"
#endif
#endif
#define JUMP_OVER(nops) __asm__ volatile(JUMP " 1f\n\t.rept " #nops "\n\tnop\n\t.endr\n1:")
/* The compiler must take no select for a branch. */
#define ARM_OF_BRANCH(variable) __asm__ volatile("" : "+r"(variable))

#endif
