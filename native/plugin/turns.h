/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns of QEMU's threads, so that a guest of several CPUs repeats. */
#ifndef KDELTA_TURNS_H
#define KDELTA_TURNS_H

/* In the thread that loads the plugin, which is the main loop's: turns are to be taken. Ends QEMU if it cannot be. */
void turns_want(void);
/* When a CPU is there. In the thread that executes it, turns are taken from then on. */
void turns_begin(void);
/* Before a CPU executes anything. */
void turns_must_have_begun(void);

#endif
