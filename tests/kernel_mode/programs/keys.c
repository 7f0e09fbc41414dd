// SPDX-License-Identifier: GPL-2.0-or-later
// Protection keys of pages, as far as the CPU has them, and mprotect besides them.
#include "calls.h"

static void read_at(void *at) { (void)*(volatile char *)at; }
static void write_at(void *at) { *(volatile char *)at = 1; }

int main(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int key, pipes[2];

	begin();
	*page = 1;
	key = pkey_alloc(0, 0);
	if (key < 0 || pipe(pipes)) {
		fact("keys", "none");
		return finish();
	}
	pkey_mprotect(page, 4096, PROT_READ | PROT_WRITE, key);
	expect("allowed", write_at, page, 0, 0, 0);
	pkey_set(key, PKEY_DISABLE_WRITE);
	expect("write-is-denied", write_at, page, SIGSEGV, SEGV_PKUERR, (unsigned long)page);
	pkey_set(key, PKEY_DISABLE_WRITE);
	expect("read-is-allowed", read_at, page, 0, 0, 0);
	pkey_set(key, PKEY_DISABLE_ACCESS);
	expect("read-is-denied", read_at, page, SIGSEGV, SEGV_PKUERR, (unsigned long)page);
	for (int way = 0; way < ways(); way++) {
		pkey_set(key, PKEY_DISABLE_ACCESS);
		long got = call3(way, SYS_write, pipes[1], page, 1);

		check_way(way, "the-kernel-heeds-it", got == -EFAULT, "%ld", got);
		pkey_set(key, 0);
		got = call3(way, SYS_write, pipes[1], page, 1);
		check_way(way, "the-kernel-may", got == 1, "%ld", got);
	}
	return finish();
}
