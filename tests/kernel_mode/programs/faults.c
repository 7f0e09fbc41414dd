// SPDX-License-Identifier: GPL-2.0-or-later
// Page faults: reads and writes of new pages, copies after fork, files, protections, and the kernel's own accesses.
#include "calls.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>

#define PAGES 64
#define PAGE 4096ul

static char *fresh(int protection)
{
	return mmap(NULL, PAGES * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void reads_and_writes(void)
{
	volatile char *page = fresh(PROT_READ | PROT_WRITE);
	long before = minor_faults(), sum = 0;

	madvise((void *)page, PAGES * PAGE, MADV_NOHUGEPAGE);
	for (unsigned long i = 0; i < PAGES; i++)
		sum += page[i * PAGE];
	check("read-faults", sum == 0 && minor_faults() - before >= PAGES, "sum %ld, faults %ld", sum,
	      minor_faults() - before);
	before = minor_faults();
	for (unsigned long i = 0; i < PAGES; i++)
		page[i * PAGE] = (char)i;
	check("write-faults", minor_faults() - before >= PAGES, "%ld", minor_faults() - before);
	for (unsigned long i = 0; i < PAGES; i++)
		sum += page[i * PAGE] == (char)i;
	check("written", sum == PAGES, "%ld pages", sum);
}

static void copies(void)
{
	volatile char *page = fresh(PROT_READ | PROT_WRITE);
	int status, same = 0;

	memset((void *)page, 1, PAGES * PAGE);
	pid_t pid = fork();

	if (!pid) {
		for (unsigned long i = 0; i < PAGES; i++)
			page[i * PAGE] += 1;
		for (unsigned long i = 0; i < PAGES; i++)
			same += page[i * PAGE] == 2 && page[i * PAGE + 1] == 1;
		_exit(same == PAGES ? 0 : 1);
	}
	for (unsigned long i = 0; i < PAGES; i += 2)
		page[i * PAGE] += 4;
	waitpid(pid, &status, 0);
	check("copied-in-the-child", status == 0, "status %x", status);
	for (unsigned long i = 0; i < PAGES; i++)
		same += page[i * PAGE] == (i % 2 ? 1 : 5);
	check("copied-in-the-parent", same == PAGES, "%d pages", same);
}

static void read_at(void *at) { (void)*(volatile char *)at; }
static void write_at(void *at) { *(volatile char *)at = 1; }
static void call_at(void *at) { ((void (*)(void))at)(); }

static void protections(void)
{
	char *page = fresh(PROT_NONE);

	expect("no-access", read_at, page + 5, SIGSEGV, SEGV_ACCERR, (unsigned long)page + 5);
	mprotect(page, PAGE, PROT_READ);
	expect("read-only", write_at, page + 7, SIGSEGV, SEGV_ACCERR, (unsigned long)page + 7);
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	memset(page, 0xc3, PAGE);
	expect("not-executable", call_at, page, SIGSEGV, SEGV_ACCERR, (unsigned long)page);
	mprotect(page, PAGE, PROT_READ | PROT_EXEC);
	expect("executable", call_at, page, 0, 0, 0);
	munmap(page, PAGE);
	expect("unmapped", read_at, page, SIGSEGV, SEGV_MAPERR, (unsigned long)page);
}

static char *guarded;

static void unprotect(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)context;
	if (info->si_addr == guarded + 9)
		mprotect(guarded, PAGE, PROT_READ | PROT_WRITE);
}

static void files(void)
{
	int file = open("/tmp/faults", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *page;

	if (write(file, "file", 4) != 4)
		check("file", 0, "not written");
	page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	check("file-read", !memcmp(page, "file", 4), "%.4s", page);
	page[0] = 'F';
	char now_there[4] = "";

	check("file-written", pread(file, now_there, 4, 0) == 4 && !memcmp(now_there, "File", 4),
	      "%.4s", now_there);
	expect("beyond-the-file", read_at, page + PAGE, SIGBUS, BUS_ADRERR, (unsigned long)page + PAGE);
	guarded = fresh(PROT_NONE);
	handle(SIGSEGV, unprotect, 0);
	guarded[9] = 3;
	check("again-by-its-handler", guarded[9] == 3, "%d", guarded[9]);
	signal(SIGSEGV, SIG_DFL);
}

/* The kernel's own accesses of user memory fault with the kernel's RIP: errors, or pages. */
static void of_the_kernel(enum way way)
{
	char *page = fresh(PROT_READ | PROT_WRITE), *none = fresh(PROT_NONE);
	int pipes[2];
	struct iovec parts[2] = { { page + PAGE - 2, 4 }, { page + 3 * PAGE - 1, 2 } };

	if (pipe(pipes))
		return;
	check_way(way, "kernel-reads-null", call3(way, SYS_write, pipes[1], 0, 1) == -EFAULT, "no");
	check_way(way, "kernel-reads-kernel",
		  call3(way, SYS_write, pipes[1], KERNEL_HOLE, 1) == -EFAULT, "no");
	check_way(way, "kernel-writes-none",
		  call2(way, SYS_clock_gettime, CLOCK_MONOTONIC, none) == -EFAULT, "no");
	check_way(way, "kernel-writes-nowhere",
		  call2(way, SYS_clock_gettime, CLOCK_MONOTONIC, NOWHERE) == -EFAULT, "no");
	check_way(way, "kernel-reads-new-pages", call3(way, SYS_writev, pipes[1], parts, 2) == 6, "no");
	check_way(way, "kernel-writes-new-pages",
		  call3(way, SYS_read, pipes[0], page + 5 * PAGE - 3, 6) == 6, "no");
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	begin();
	reads_and_writes();
	copies();
	protections();
	files();
	for (int way = 0; way < ways(); way++)
		of_the_kernel(way);
	return finish();
}
