/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/list.h>
#include <linux/lock.h>
static struct list head, first;
static int held;
int clear_pages(int count);
void start_kernel(void)
{
	lock(&held);
	list_add(&head, &first);
	clear_pages(2);
}
