/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers and the red zone: a call changes RAX, RCX and R11 only. */
#include "calling.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* getppid() with 14 registers, two of SSE and the red zone as `given`; `found` is how they are afterwards. */
struct state {
    uint64_t registers[12]; /* rbx rbp rdi rsi rdx r8 r9 r10 r12 r13 r14 r15 */
    uint64_t sse[2];
    uint64_t red_zone[16];
};

long call_with(const struct state *given, struct state *found);

__asm__(".pushsection .text\n"
        ".type call_with, @function\n"
        "call_with:\n"
        "	.cfi_startproc\n"
        "	push %rbx\n"
        "	push %rbp\n"
        "	push %r12\n"
        "	push %r13\n"
        "	push %r14\n"
        "	push %r15\n"
        "	push %rsi\n"
        "	mov $16, %ecx\n"
        "1:	mov 104(%rdi, %rcx, 8), %rax\n"
        "	neg %rcx\n"
        "	mov %rax, (%rsp, %rcx, 8)\n"
        "	neg %rcx\n"
        "	loop 1b\n"
        "	mov 0(%rdi), %rbx\n"
        "	mov 8(%rdi), %rbp\n"
        "	mov 24(%rdi), %rsi\n"
        "	mov 32(%rdi), %rdx\n"
        "	mov 40(%rdi), %r8\n"
        "	mov 48(%rdi), %r9\n"
        "	mov 56(%rdi), %r10\n"
        "	mov 64(%rdi), %r12\n"
        "	mov 72(%rdi), %r13\n"
        "	mov 80(%rdi), %r14\n"
        "	mov 88(%rdi), %r15\n"
        "	movq 96(%rdi), %xmm0\n"
        "	movq 104(%rdi), %xmm15\n"
        "	mov 16(%rdi), %rdi\n"
        "	xor %eax, %eax\n"
        "	mov $110, %eax\n"
        "	syscall\n"
        "	mov (%rsp), %rcx\n"
        "	mov %rbx, 0(%rcx)\n"
        "	mov %rbp, 8(%rcx)\n"
        "	mov %rdi, 16(%rcx)\n"
        "	mov %rsi, 24(%rcx)\n"
        "	mov %rdx, 32(%rcx)\n"
        "	mov %r8, 40(%rcx)\n"
        "	mov %r9, 48(%rcx)\n"
        "	mov %r10, 56(%rcx)\n"
        "	mov %r12, 64(%rcx)\n"
        "	mov %r13, 72(%rcx)\n"
        "	mov %r14, 80(%rcx)\n"
        "	mov %r15, 88(%rcx)\n"
        "	movq %xmm0, 96(%rcx)\n"
        "	movq %xmm15, 104(%rcx)\n"
        "	mov %rcx, %rdi\n"
        "	mov $16, %ecx\n"
        "1:	neg %rcx\n"
        "	mov (%rsp, %rcx, 8), %rdx\n"
        "	neg %rcx\n"
        "	mov %rdx, 104(%rdi, %rcx, 8)\n"
        "	loop 1b\n"
        "	pop %rsi\n"
        "	pop %r15\n"
        "	pop %r14\n"
        "	pop %r13\n"
        "	pop %r12\n"
        "	pop %rbp\n"
        "	pop %rbx\n"
        "	ret\n"
        "	.cfi_endproc\n"
        ".size call_with, . - call_with\n"
        ".popsection\n");

void registers_check(void)
{
    struct state given, found;
    uint64_t *words = (uint64_t *)&given;

    for (size_t i = 0; i < sizeof(given) / sizeof(*words); i++)
        words[i] = 0x0123456789abcdefull * (2 * i + 1);
    memset(&found, 0, sizeof(found));
    EXPECT(call_with(&given, &found) == getppid());
    EXPECT(!memcmp(given.registers, found.registers, sizeof(found.registers)));
    EXPECT(!memcmp(given.sse, found.sse, sizeof(found.sse)));
    EXPECT(!memcmp(given.red_zone, found.red_zone, sizeof(found.red_zone)));
}

void case_registers(void)
{
    for (int i = 0; i < 1000; i++)
        registers_check();
}

void case_six(void)
{
    int file = memfd_create("six", 0);
    char *memory;

    EXPECT(file >= 0 && ftruncate(file, 8192) == 0 && pwrite(file, "x", 1, 4096) == 1);
    memory = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, file, 4096);
    EXPECT(memory != MAP_FAILED && *memory == 'x');
    EXPECT(syscall(SYS_munmap, memory, 4096) == 0);
    EXPECT(syscall(-1) == -1 && errno == ENOSYS);
}
