/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps QEMU's main loop from moving the clock while the CPU is on its way into a halt. */
#ifndef KDELTA_HALT_H
#define KDELTA_HALT_H

#include "arch.h"
#include "qemu_api.h"

/* Gets the main loop to ask before each of its rounds. */
void halt_init(const struct arch *arch);
/* Whether the instruction stops the CPU until an interrupt. */
bool halt_is(const struct insn_facts *facts);
/* Right before such an instruction. */
void halt_begins(unsigned int vcpu, void *unused);

#endif
