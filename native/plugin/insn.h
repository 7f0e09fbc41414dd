/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instructions of a translation, with what is known of each. */
#ifndef KDELTA_INSN_H
#define KDELTA_INSN_H

#include "arch.h"

struct qemu_plugin_tb;

/* As many as the translation has; they are good until the next call. */
const struct insn *insns_of(const struct qemu_plugin_tb *tb, const struct arch *arch);

#endif
