// SPDX-License-Identifier: GPL-2.0-or-later
// What user mode catches and kernel mode cannot, one case a guest: the process ends by a signal, or the kernel feels it.
#include "proof.h"

static unsigned long at; /* of the kernel: what is written, or called */

static void privileged(void) { __asm__ volatile("mov %%cr4, %%rax" ::: "rax"); }
static void port(void) { __asm__ volatile("outb %%al, $0x80" : : "a"(0)); }
static void msr(void) { __asm__ volatile("rdmsr" : : "c"(0xc0000080) : "eax", "edx"); }
static void halt(void) { __asm__ volatile("hlt"); }
static void read_kernel(void) { (void)*(volatile char *)(DIRECT_MAP + (1 << 20)); }
static void swap(void) { __asm__ volatile("swapgs\n\tint3"); }
static void gate(void) { __asm__ volatile("int $0x20"); }
static void gate_with_code(void) { __asm__ volatile("int $14"); }
static void stack_segment(void) { __asm__ volatile("mov %0, %%ss" : : "r"(USER_SS)); }
static void kernel_code(void) { __asm__ volatile("call *%0" : : "r"(at) : "memory"); }

/* The name of the system in init_uts_ns, which lies at that address. */
static void write_kernel(void)
{
	volatile char *word = (char *)at;

	for (int i = 0; i < 64; i++)
		if (!memcmp((char *)word + i, "Linux", 6))
			word[i] = 'K';
}

static void no_interrupts(void)
{
	__asm__ volatile("cli");
	for (;;)
		;
}

static const struct { const char *name; void (*act)(void); } cases[] = {
	{ "control-register", privileged }, { "port", port },
	{ "model-specific-register", msr }, { "halt", halt },
	{ "read-kernel", read_kernel }, { "write-kernel", write_kernel },
	{ "no-interrupts", no_interrupts }, { "swapgs", swap }, { "gate", gate },
	{ "gate-with-code", gate_with_code }, { "stack-segment", stack_segment },
	{ "call-kernel-code", kernel_code },
};

int main(int argc, char **argv)
{
	int status;

	begin();
	for (unsigned i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		if (argc > 2)
			at = strtoul(argv[2], NULL, 16);
		printf("trying %s at %lx\n", cases[i].name, at);
		pid_t pid = fork();

		if (!pid) {
			cases[i].act();
			_exit(0);
		}
		waitpid(pid, &status, 0);
		if (WIFSIGNALED(status))
			printf("caught %s: signal %d\n", argv[1], WTERMSIG(status));
		else
			printf("not caught %s\n", argv[1]);
	}
	FILE *file = fopen("/proc/sys/kernel/ostype", "r");
	char line[128] = "";

	if (file && fgets(line, sizeof(line), file))
		printf("ostype %s", line);
	return finish();
}
