/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns of QEMU's threads, so that a guest of several CPUs repeats. */
#ifndef KDELTA_TURNS_H
#define KDELTA_TURNS_H

#include <stdbool.h>

/* In the thread that loads the plugin, which is the main loop's: turns are to be taken. Ends QEMU if it cannot be. */
void turns_want(void);
/* When a CPU is there. In the thread that executes it, turns are taken from then on. */
void turns_begin(void);
/* Before a CPU executes anything. */
void turns_must_have_begun(void);
/* CPUs may get short turns, which are switched by the monitor that listens on that Unix socket. */
void turns_may_be_short(const char *monitor);
/* From a CPU's thread: turns become short, or as long as they were; nothing where they may not be. Ends QEMU if that fails. */
void turns_shorten(bool on);

#endif
