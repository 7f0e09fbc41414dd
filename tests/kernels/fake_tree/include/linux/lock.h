/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef LOCK_H
#define LOCK_H
void lock(int *it);
#ifdef CONFIG_WATCHDOG
void watch(void);
#endif
#endif
