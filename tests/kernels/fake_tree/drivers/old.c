/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/lock.h>
static int old;
void old_driver(void)
{
	lock(&old);
}
