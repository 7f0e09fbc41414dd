/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef LIST_H
#define LIST_H
struct list { struct list *next; };
int list_valid(struct list *list);
static inline int list_add(struct list *list, struct list *to)
{
#ifdef CONFIG_DEBUG_LIST
	if (!list_valid(list))
		return 0;
#endif
	list->next = to;
	return 1;
}
#endif
