/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/lock.h>
void lock(int *it)
{
#ifdef CONFIG_DEBUG_LOCK
	if (*it < 0)
		return;
#endif
	*it += 1;
}
