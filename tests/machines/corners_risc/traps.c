/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals of instructions that fault, in the middle of blocks and at their ends; and the kernel's own faults. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <ucontext.h>
#include <unistd.h>

#include "corners.h"

static sigjmp_buf back;
static uint8_t *hole, *pages;

static void jump_back(int signal)
{
    siglongjmp(back, signal);
}

static void catch_all(void)
{
    static const int signals[] = { SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGTRAP };
    struct sigaction action = { .sa_handler = jump_back };

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    hole = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void expect(int signal, int got)
{
    if (signal != got) {
        errno = EINVAL;
        fail("another signal than expected");
    }
}

#if defined(__arm__)
#define CLOBBERED "r0", "r1", "r2", "r3", "r4", "r5", "ip", "lr", "d0", "d1"
#define JUMP "b 1f\n1:"
#elif defined(__aarch64__)
#define CLOBBERED "x0", "x1", "x2", "x3", "x4", "x5", "x30", "v0", "v1"
#define JUMP "b 1f\n1:"
#else
#define CLOBBERED "a0", "a1", "a2", "a3", "a4", "a5", "ra", "fa0"
#define JUMP "j 1f\n1:"
#endif

/* The instruction in the middle of a block, and as its last one; %0 is a page that must not be accessed. */
#define TRAP(name, signal, text)                                                                                       \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        for (int i = 0; i < 5; i++) {                                                                                  \
            volatile int got = sigsetjmp(back, 1);                                                                     \
            if (!got)                                                                                                  \
                __asm__ volatile("nop\n\t" text "\n\tnop\n\tnop" : : "r"(hole) : "memory", "cc", CLOBBERED);           \
            expect(signal, got);                                                                                       \
            got = sigsetjmp(back, 1);                                                                                  \
            if (!got)                                                                                                  \
                __asm__ volatile("nop\n\t" text "\n\t" JUMP : : "r"(hole) : "memory", "cc", CLOBBERED);                \
            expect(signal, got);                                                                                       \
        }                                                                                                              \
    }

#if defined(__arm__)
TRAP(bad_load, SIGSEGV, "ldr r1, [%0]")
TRAP(bad_store, SIGSEGV, "str r1, [%0]")
TRAP(bad_pair, SIGSEGV, "ldrd r0, r1, [%0]")
TRAP(bad_many, SIGSEGV, "stmia %0, {r0-r3}")
TRAP(bad_exclusive, SIGSEGV, "ldrex r1, [%0]")
TRAP(bad_vector, SIGSEGV, "vld1.8 {d0, d1}, [%0]")
TRAP(bad_condition, SIGSEGV, "cmp %0, #0\n\tit ne\n\tldrne r1, [%0]")
TRAP(bad_jump, SIGSEGV, "bx %0")
TRAP(bad_call, SIGSEGV, "blx %0")
TRAP(bad_jump_through, SIGSEGV, "ldr.w pc, [%0]")
TRAP(bad_barrier, SIGILL, "mcr p15, 0, r0, c3, c0, 0") /* the domains' register */
TRAP(read_system, SIGILL, "mrc p15, 0, r0, c1, c0, 0")
TRAP(undefined, SIGILL, "udf #255") /* udf #1 is a breakpoint of Linux */
#elif defined(__aarch64__)
TRAP(bad_load, SIGSEGV, "ldr x1, [%0]")
TRAP(bad_store, SIGSEGV, "str x1, [%0]")
TRAP(bad_pair, SIGSEGV, "ldp x0, x1, [%0]")
TRAP(bad_many, SIGSEGV, "stp x0, x1, [%0]")
TRAP(bad_exclusive, SIGSEGV, "ldxr x1, [%0]")
TRAP(bad_vector, SIGSEGV, "ld1 {v0.16b, v1.16b}, [%0]")
TRAP(bad_condition, SIGSEGV, "cbz %0, 2f\n\tldr x1, [%0]\n2:")
TRAP(bad_jump, SIGSEGV, "br %0")
TRAP(bad_call, SIGSEGV, "blr %0")
TRAP(bad_jump_through, SIGSEGV, "ldr x1, [%0]\n\tbr x1")
TRAP(bad_barrier, SIGILL, "msr ttbr0_el1, x0")
TRAP(read_system, SIGILL, "mrs x0, sctlr_el1")
TRAP(undefined, SIGILL, "udf #1")
#else
TRAP(bad_load, SIGSEGV, "ld a1, 0(%0)")
TRAP(bad_store, SIGSEGV, "sd a1, 0(%0)")
TRAP(bad_pair, SIGSEGV, "lw a1, 0(%0)")
TRAP(bad_many, SIGSEGV, "fsd fa0, 0(%0)")
TRAP(bad_exclusive, SIGSEGV, "lr.d a1, (%0)")
TRAP(bad_vector, SIGSEGV, "fld fa0, 0(%0)")
TRAP(bad_condition, SIGSEGV, "beqz %0, 2f\n\tld a1, 0(%0)\n2:")
TRAP(bad_jump, SIGSEGV, "jr %0")
TRAP(bad_call, SIGSEGV, "jalr %0")
TRAP(bad_jump_through, SIGSEGV, "ld a1, 0(%0)\n\tjr a1")
TRAP(bad_barrier, SIGILL, "sfence.vma")
TRAP(read_system, SIGILL, "csrr a0, sstatus")
TRAP(undefined, SIGILL, "unimp")
#endif

/* It lets the access happen, and then the instruction is executed again. */
static void allow(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    if (mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE))
        fail("mprotect");
}

static void allowed(void)
{
    struct sigaction action = { .sa_sigaction = allow, .sa_flags = SA_SIGINFO };

    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 8; i++)
        hole[(size_t)i * PAGE + 5] += 3;
    memcpy(hole + 8 * PAGE + 11, pages, 7 * PAGE);
}

#ifdef __arm__
/* What the kernel does in the place of an instruction that cannot access there. */
static void fixed_up(void)
{
    static uint32_t words[8];

    for (int i = 0; i < 10; i++)
        __asm__ volatile("nop\n\tldmia %0, {r1-r3}\n\tnop" : : "r"((uint8_t *)words + 1) : "r1", "r2", "r3", "memory");
}
#endif

/* System calls that the kernel's own accesses to user memory fail in, at once or half-way. */
static void bad_pointers(void)
{
    char path[] = "/dev/zero";
    int zero = open(path, O_RDONLY), pipes[2];
    struct iovec parts[2] = { { pages, 3 * PAGE + 5 }, { hole, PAGE } };

    if (mprotect(pages + 20 * PAGE, PAGE, PROT_NONE) || pipe(pipes))
        fail("mprotect");
    for (int i = 0; i < 5; i++) {
        if (syscall(SYS_openat, AT_FDCWD, hole, O_RDONLY) != -1 || syscall(SYS_uname, hole) != -1)
            fail("no EFAULT");
        syscall(SYS_read, zero, pages + 18 * PAGE + 100 - i, 4 * PAGE);
        syscall(SYS_write, pipes[1], pages + 19 * PAGE - 7, 2 * PAGE);
        syscall(SYS_read, pipes[0], pages + 20 * PAGE - 9 - i, PAGE);
        syscall(SYS_readv, zero, parts, 2);
        syscall(SYS_rt_sigaction, SIGUSR1, hole, NULL, 8);
        syscall(SYS_clock_gettime, 0, hole);
        syscall(SYS_futex, hole, 1, 1);
    }
}

/* Copies of the kernel that fault again and again. */
static void copies_to_new_pages(void)
{
    int from = memfd_create("data", 0);

    if (from < 0 || ftruncate(from, 64 * PAGE))
        fail("memfd_create");
    for (int i = 0; i < 3; i++) {
        madvise(pages, 64 * PAGE, MADV_DONTNEED);
        if (pread(from, pages + 123, 40 * PAGE, 17) != 40 * PAGE)
            fail("pread");
        if (pwrite(from, pages + 45 * PAGE + 9, 15 * PAGE, 3) != 15 * PAGE)
            fail("pwrite");
    }
    close(from);
}

#define CASE(name, go) { name, catch_all, go, false }

const struct corner trap_corners[] = {
    CASE("bad-load", bad_load), CASE("bad-store", bad_store), CASE("bad-pair", bad_pair), CASE("bad-many", bad_many),
    CASE("bad-exclusive", bad_exclusive), CASE("bad-vector", bad_vector), CASE("bad-condition", bad_condition),
    CASE("bad-jump", bad_jump), CASE("bad-call", bad_call), CASE("bad-jump-through", bad_jump_through),
    CASE("bad-barrier", bad_barrier), CASE("read-system", read_system), CASE("undefined", undefined),
    CASE("allowed", allowed), CASE("bad-pointers", bad_pointers), CASE("copies-to-new-pages", copies_to_new_pages),
#ifdef __arm__
    CASE("fixed-up", fixed_up),
#endif
    { 0 },
};
