/* SPDX-License-Identifier: 0BSD */
/* The clocks of 32-bit ARM, for kdelta_clock_steps.h: which of them a machine has is seen when it is first asked for. */
#ifndef KDELTA_CLOCK_ARM_H
#define KDELTA_CLOCK_ARM_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Those with LPAE have the generic timer, too (HWCAP_LPAE of the kernel's asm/hwcap.h). */
#define KDELTA_CLOCK_HWCAP_LPAE (1u << 20)

/* The Cortex-A9's private memory on the board vexpress-a9, where the kernel's device tree shows it. Its global timer is at 0x200
 * (Cortex-A9 MPCore Technical Reference Manual, 4.3): counter low, counter high, control, whose lowest bit enables it. */
#define KDELTA_CLOCK_A9_SIGN "/proc/device-tree/scu@1e000000"
#define KDELTA_CLOCK_A9_PAGE 0x1e000000
#define KDELTA_CLOCK_A9_TIMER 0x200
#define KDELTA_CLOCK_A9_STEP_NS 10

enum kdelta_clock_kind { KDELTA_CLOCK_UNKNOWN, KDELTA_CLOCK_COUNTER, KDELTA_CLOCK_A9, KDELTA_CLOCK_CALL };

static struct {
    enum kdelta_clock_kind kind;
    volatile uint32_t *timer;
} kdelta_clock;

static inline void kdelta_clock_find_a9(void)
{
    volatile uint8_t *page = (volatile uint8_t *)MAP_FAILED;
    int fd = access(KDELTA_CLOCK_A9_SIGN, F_OK) ? -1 : open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);

    if (fd >= 0) {
        page = (volatile uint8_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, KDELTA_CLOCK_A9_PAGE);
        close(fd);
    }
    if (page == (volatile uint8_t *)MAP_FAILED)
        return;
    kdelta_clock.timer = (volatile uint32_t *)(page + KDELTA_CLOCK_A9_TIMER);
    if (!(kdelta_clock.timer[2] & 1))
        kdelta_clock.timer[2] |= 1;
    kdelta_clock.kind = KDELTA_CLOCK_A9;
}

static inline enum kdelta_clock_kind kdelta_clock_kind(void)
{
    if (kdelta_clock.kind == KDELTA_CLOCK_UNKNOWN) {
        kdelta_clock.kind = getauxval(AT_HWCAP) & KDELTA_CLOCK_HWCAP_LPAE ? KDELTA_CLOCK_COUNTER : KDELTA_CLOCK_CALL;
        if (kdelta_clock.kind == KDELTA_CLOCK_CALL)
            kdelta_clock_find_a9();
    }
    return kdelta_clock.kind;
}

#define KDELTA_CLOCK_READ(whole, low, high) "mrrc p15, 1, " low ", " high ", c14\n\t"

static inline int kdelta_clock_is_counter(void)
{
    return kdelta_clock_kind() == KDELTA_CLOCK_COUNTER;
}

static inline uint64_t kdelta_clock_read(void)
{
    struct timespec now;
    uint64_t steps;
    uint32_t high;

    switch (kdelta_clock_kind()) {
    case KDELTA_CLOCK_COUNTER:
        __asm__ volatile(KDELTA_CLOCK_READ("", "%Q0", "%R0") : "=r"(steps));
        return steps;
    case KDELTA_CLOCK_A9:
        do {
            high = kdelta_clock.timer[1];
            steps = (uint64_t)high << 32 | kdelta_clock.timer[0];
        } while (high != kdelta_clock.timer[1]);
        return steps;
    default:
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    }
}

static inline unsigned int kdelta_clock_step_ns(void)
{
    uint32_t hz;

    if (kdelta_clock_kind() != KDELTA_CLOCK_COUNTER)
        return kdelta_clock.kind == KDELTA_CLOCK_A9 ? KDELTA_CLOCK_A9_STEP_NS : 1;
    __asm__("mrc p15, 0, %0, c14, c0, 0" : "=r"(hz));
    return hz && hz < 1000000000 ? 1000000000 / hz : 1;
}

/* The number of the step that has just begun, for a clock with such steps. */
static inline uint64_t kdelta_clock_edge(unsigned int step_ns)
{
    uint32_t before, now, passed;
    uint64_t later;

    if (step_ns != KDELTA_CLOCK_A9_STEP_NS || kdelta_clock.kind != KDELTA_CLOCK_A9)
        return kdelta_clock_read();
    __asm__ volatile("ldr %0, [%3]\n"
                     "1: mov %1, %0\n\t"
                     "ldr %0, [%3]\n\t"
                     "sub %2, %0, %1\n\t"
                     "cmp %2, #2\n\t"
                     ".rept 6\n\tnop\n\t.endr\n\t"
                     "bne 1b"
                     : "=&r"(now), "=&r"(before), "=&r"(passed)
                     : "r"(kdelta_clock.timer)
                     : "cc");
    later = kdelta_clock_read();
    return later - (uint32_t)((uint32_t)later - now);
}

#endif
