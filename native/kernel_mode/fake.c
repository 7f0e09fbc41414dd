/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests: an entry in user mode, which goes back to the `syscall` before the return address and counts. */
#ifdef KDELTA_CALL_TEST
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "call.h"

static uint64_t fake_alone;
uint64_t *kc_fake_counter __attribute__((visibility("hidden"))) = &fake_alone;

extern const uint8_t kc_fake_entry_code[] __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
        ".globl kc_fake_entry_code\n"
        ".hidden kc_fake_entry_code\n"
        "kc_fake_entry_code:\n"
        "	mov kc_fake_counter(%rip), %r11\n"
        "	lock incq (%r11)\n"
        "	lea -2(%rcx), %r11\n"
        "	jmp *%r11\n"
        ".popsection\n");

/* The counter is 8 bytes at the start of that file, which all processes share; without a file it counts in vain. */
uint64_t kc_fake_entry(const char *counts_path)
{
    long file, memory;

    if (counts_path) {
        file = kc_raw_call(SYS_open, (long)counts_path, O_RDWR | O_CLOEXEC, 0, 0, 0, 0);
        memory = kc_raw_call(SYS_mmap, 0, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        kc_raw_call(SYS_close, file, 0, 0, 0, 0, 0);
        if (file < 0 || (memory < 0 && memory > -PAGE_BYTES))
            kc_fail("cannot count in", counts_path);
        kc_fake_counter = (uint64_t *)memory;
    }
    return (uint64_t)kc_fake_entry_code;
}
#endif
