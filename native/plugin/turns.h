/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns of QEMU's threads, so that a guest of several CPUs repeats. */
#ifndef KDELTA_TURNS_H
#define KDELTA_TURNS_H

/* In the thread that loads the plugin, which is the main loop's: turns are to be taken. Ends QEMU if it cannot be. */
void turns_want(void);
/* In the thread of the guest's CPUs, before they execute anything. */
void turns_begin(void);

#endif
