// SPDX-License-Identifier: GPL-2.0-or-later
// Wild pointers: each is the process's own SIGSEGV, with the code and address that user mode has.
#include "proof.h"

static void read_at(void *at) { (void)*(volatile char *)at; }
static void write_at(void *at) { *(volatile char *)at = 1; }
static void jump_to(void *at) { __asm__ volatile("jmp *%0" : : "r"(at)); }
static void call_to(void *at) { __asm__ volatile("call *%0" : : "r"(at)); }

static void return_to(void *at)
{
	__asm__ volatile("push %0\n\tret" : : "r"(at));
}

static void push_at(void *at)
{
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tpush %%rax\n\tmov %%rbx, %%rsp"
			 : : "r"(at) : "rbx", "memory");
}

static void call_at(void *at)
{
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tcall 1f\n1:\tmov %%rbx, %%rsp"
			 : : "r"(at) : "rbx", "memory");
}

static void pop_and_go(void *at)
{
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tret\n\tmov %%rbx, %%rsp"
			 : : "r"(at) : "rbx", "memory");
}

static void undefined_at(void *at)
{
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tud2\n\tmov %%rbx, %%rsp"
			 : : "r"(at) : "rbx", "memory");
}

static void handler(int signo) { (void)signo; }

static void copy_to(void *at)
{
	__asm__ volatile("rep stosb" : "+D"(at) : "a"(1), "c"(100) : "memory");
}

struct place {
	const char *name;
	unsigned long at;
	int code;
};

static void accesses(const struct place *place)
{
	static const struct { const char *name; void (*act)(void *); } acts[] = {
		{ "read", read_at }, { "write", write_at }, { "jump", jump_to }, { "call", call_to },
		{ "return", return_to }, { "fill", copy_to }, { "return-through", pop_and_go } };
	unsigned long addr = place->code == SI_KERNEL ? 0 : place->at;
	char name[64];

	for (unsigned i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
		snprintf(name, sizeof(name), "%s-%s", acts[i].name, place->name);
		expect(name, acts[i].act, (void *)place->at, SIGSEGV, place->code, addr);
	}
	addr -= place->code == SI_KERNEL ? 0 : 8;
	/* Below null is the kernel's half, and below what is first in no half is the user's. */
	if (place->at == 0 || place->at == 1ul << 47)
		return;
	snprintf(name, sizeof(name), "push-on-%s", place->name);
	expect(name, push_at, (void *)place->at, SIGSEGV, place->code, addr);
	snprintf(name, sizeof(name), "call-on-%s", place->name);
	expect(name, call_at, (void *)place->at, SIGSEGV, place->code, addr);
	struct caught got = fault_of(undefined_at, (void *)place->at);

	snprintf(name, sizeof(name), "undefined-on-%s", place->name);
	check(name, got.signo == SIGILL && got.code == ILL_ILLOPN && got.addr == got.rip,
	      "signal %d code %d addr %lx", got.signo, got.code, got.addr);
}

/* A system call needs no stack, and leaves RSP as it was. */
static void calls_on(const struct place *place)
{
	unsigned long after;
	char name[64];
	long got;

	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %3, %%rsp\n\tsyscall\n\tmov %%rsp, %1\n\tmov %%rbx, %%rsp"
			 : "=a"(got), "=&r"(after)
			 : "0"(SYS_getpid), "r"(place->at)
			 : "rbx", "rcx", "r11", "memory");
	snprintf(name, sizeof(name), "syscall-on-%s", place->name);
	check(name, got == getpid() && after == place->at, "%ld, rsp %lx", got, after);
}

/* A signal that finds no stack to be handled on ends the process. */
static void signals_on(const struct place *place)
{
	pid_t pid = fork();
	char name[64];
	int status;

	if (!pid) {
		signal(SIGUSR1, handler);
		__asm__ volatile("mov %0, %%rsp\n\tsyscall\n1:\tjmp 1b"
				 : : "r"(place->at), "a"(SYS_kill), "D"(getpid()), "S"(SIGUSR1)
				 : "rcx", "r11");
	}
	waitpid(pid, &status, 0);
	snprintf(name, sizeof(name), "signal-on-%s", place->name);
	check(name, WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %x", status);
}

int main(void)
{
	char *gone = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	begin();
	munmap(gone, 1 << 20);
	const struct place places[] = {
		{ "null", 0, SEGV_MAPERR },
		{ "low", 0x1234, SEGV_MAPERR },
		{ "unmapped", (unsigned long)gone + (1 << 19), SEGV_MAPERR },
		{ "kernel-hole", KERNEL_HOLE + 0x100, SEGV_MAPERR },
		{ "kernel-top", -0x800ul, SEGV_MAPERR },
		{ "non-canonical", NOWHERE, SI_KERNEL },
		{ "non-canonical-high", NOWHERE_HIGH, SI_KERNEL },
		{ "first-non-canonical", 1ul << 47, SI_KERNEL },
	};

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		accesses(&places[i]);
		calls_on(&places[i]);
		signals_on(&places[i]);
	}
	/* Mapped by the kernel, but not for this: its text cannot be written, its data not executed. */
	unsigned long text = kernel_symbol("_text"), data = DIRECT_MAP + (1 << 20);

	if (!text) {
		skip("kernel-text", "the kernel does not tell its symbols");
		return finish();
	}
	expect("write-kernel-text", write_at, (void *)(text + 64), SIGSEGV, SEGV_MAPERR, text + 64);
	expect("push-on-kernel-text", push_at, (void *)(text + 64), SIGSEGV, SEGV_MAPERR, text + 56);
	expect("jump-kernel-data", jump_to, (void *)data, SIGSEGV, SEGV_MAPERR, data);
	return finish();
}
