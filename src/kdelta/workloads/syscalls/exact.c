/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code of which it is known what is executed: a slide of NOPs that is entered so far from its end, and a block whose last instruction
 * lies on two pages.
 */
#include "bench.h"

#include <stdint.h>

/* Its end is global: ld takes what arm64's GOT has of a local symbol, the section and an offset, for the section's start. */
#define SLIDE(start, nop, ret) \
    __asm__(".pushsection .text\n" start "spin_slide:\n" \
            ".rept 4096\n" nop "\n.endr\n" \
            ".globl spin_slide_end\nspin_slide_end:\n" ret "\n" \
            ".size spin_slide, . - spin_slide\n" \
            ".popsection")
/* Up to where the block starts, three NOPs before the end of the page, less what the last instruction has before it. */
#define CROSSING(start, nop, fill, entry, last) \
    __asm__(".pushsection .text\n" start ".balign 4096\n" \
            ".globl cross_page\n.rept " fill "\n" nop "\n.endr\n" entry "cross_page:\n" \
            nop "\n" nop "\n" nop "\n" last "\n" \
            ".size cross_page, . - cross_page\n" \
            ".popsection")

#if defined(__x86_64__)
#define NOP_BYTES 1
SLIDE(".type spin_slide, @function\n", "nop", "ret");
CROSSING(".type cross_page, @function\n", "nop", "4096 - 3 - 3", "", "mov $1, %eax\nret"); /* 3 of its 5 bytes */
#elif defined(__arm__)
#define NOP_BYTES 4
SLIDE(".syntax unified\n.arm\n.type spin_slide, %function\n", "nop", "bx lr");
CROSSING(".syntax unified\n.thumb\n.type cross_page, %function\n", "nop.n", "(4096 - 6 - 2) / 2", ".thumb_func\n",
         "movw r0, #1\nbx lr");
#elif defined(__aarch64__)
#define NOP_BYTES 4
SLIDE(".type spin_slide, %function\n", "nop", "ret");
CROSSING(".type cross_page, %function\n", "nop", "1024 - 3", "", "ret"); /* none lies on two: the next page's first */
#elif defined(__riscv)
#define NOP_BYTES 4
SLIDE(".option push\n.option norvc\n.type spin_slide, @function\n", "nop", "ret\n.option pop");
CROSSING(".option push\n.option rvc\n.type cross_page, @function\n", "c.nop", "(4096 - 6 - 2) / 2", "",
         "lui a0, 0x12345\nret\n.option pop");
#endif

void spin(unsigned nops)
{
    extern const char spin_slide_end[];
    void (*enter)(void) = (void (*)(void))(uintptr_t)(spin_slide_end - nops * NOP_BYTES);

    enter();
}
