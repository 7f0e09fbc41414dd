/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/list.h>
int list_valid(struct list *list)
{
	return list != list->next;
}
