/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory near code, by raw system calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "call.h"

#define MIB (1ull << 20)
#define NEAR_BYTES (256 * MIB) /* how far below its module a stub lies, where nothing is in the way */
#define REACH_BYTES (1536 * MIB)
#define STEP_BYTES (64ull << 10)

__asm__(".pushsection .text\n"
        ".hidden kc_raw_call, kc_raw_call_site\n"
        ".globl kc_raw_call, kc_raw_call_site\n"
        ".type kc_raw_call, @function\n"
        "kc_raw_call:\n"
        "	.cfi_startproc\n"
        "	mov %rdi, %rax\n"
        "	mov %rsi, %rdi\n"
        "	mov %rdx, %rsi\n"
        "	mov %rcx, %rdx\n"
        "	mov %r8, %r10\n"
        "	mov %r9, %r8\n"
        "	mov 8(%rsp), %r9\n"
        "kc_raw_call_site:\n"
        "	syscall\n"
        "	ret\n"
        "	.cfi_endproc\n"
        ".size kc_raw_call, . - kc_raw_call\n"
        ".popsection\n");

static void *map(uint64_t address, uint64_t bytes, int flags)
{
    long got = kc_raw_call(SYS_mmap, (long)address, (long)bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    return got < 0 && got > -PAGE_BYTES ? NULL : (void *)got;
}

void *kc_memory_any(uint64_t bytes)
{
    void *memory = map(0, bytes, 0);

    if (!memory)
        kc_fail("no memory", NULL);
    return memory;
}

/* Below the module: above it are the heap of a program, or the stack, and both grow. */
uint8_t *kc_memory_near(const struct module *module, uint64_t bytes)
{
    uint64_t begin = (uint64_t)module->all.begin & -(uint64_t)PAGE_BYTES;
    uint64_t distance = begin > REACH_BYTES ? NEAR_BYTES : bytes;

    for (; distance < REACH_BYTES && distance + STEP_BYTES <= begin; distance += STEP_BYTES) {
        uint8_t *memory = map(begin - distance, bytes, MAP_FIXED_NOREPLACE);

        if (memory == (uint8_t *)(begin - distance))
            return memory;
        if (memory) /* a kernel that takes the address for a hint */
            kc_raw_call(SYS_munmap, (long)memory, (long)bytes, 0, 0, 0, 0);
    }
    return NULL;
}

void kc_memory_protect(struct span bytes, int protection)
{
    uint64_t begin = (uint64_t)bytes.begin & -(uint64_t)PAGE_BYTES;
    uint64_t size = ROUND_UP((uint64_t)bytes.end - begin);

    if (kc_raw_call(SYS_mprotect, (long)begin, (long)size, protection, 0, 0, 0))
        kc_fail("a program's text cannot be rewritten", "mprotect was refused");
}
