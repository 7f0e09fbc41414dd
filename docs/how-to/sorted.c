/* SPDX-License-Identifier: 0BSD */
/* Sorts a table: an example of a program with a marked region. */
#include <stdlib.h>

#include "kdelta.h"

static int table[1000];

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void sort_random_numbers(void)
{
	for (int i = 0; i < 1000; i++)
		table[i] = rand();
	qsort(table, 1000, sizeof(*table), by_value);
}

int main(void)
{
	for (int i = 0; i < 10; i++) /* warm up: nothing outside the region is counted */
		sort_random_numbers();
	kdelta_begin("sort");
	for (int i = 0; i < 100; i++) {
		sort_random_numbers();
		kdelta_iter(); /* an iteration ends here */
	}
	kdelta_end();
	return 0;
}
