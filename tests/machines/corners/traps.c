/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals of instructions that fault, in the middle of blocks and at their ends; and the kernel's own faults. */
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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
    static const int signals[] = { SIGSEGV, SIGFPE, SIGILL, SIGBUS };
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

/* The instruction in the middle of a block, and as its last one. */
#define TRAP(name, signal, text)                                                                                       \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        for (int i = 0; i < 5; i++) {                                                                                  \
            volatile int got = sigsetjmp(back, 1);                                                                     \
            if (!got) {                                                                                                \
                __asm__ volatile("nop\n\t" text "\n\tnop\n\tnop"                                                       \
                                 : : "D"(hole), "a"(0), "d"(0), "c"(0) : "memory", "cc", "rbx", "rsi");                \
            }                                                                                                          \
            expect(signal, got);                                                                                       \
            got = sigsetjmp(back, 1);                                                                                  \
            if (!got) {                                                                                                \
                __asm__ volatile("nop\n\t" text "\n\tjmp 1f\n1:"                                                       \
                                 : : "D"(hole), "a"(0), "d"(0), "c"(0) : "memory", "cc", "rbx", "rsi");                \
            }                                                                                                          \
            expect(signal, got);                                                                                       \
        }                                                                                                              \
    }

TRAP(bad_load, SIGSEGV, "mov (%%rdi),%%eax")
TRAP(bad_store, SIGSEGV, "mov %%eax,(%%rdi)")
TRAP(bad_add, SIGSEGV, "add %%eax,(%%rdi)")
TRAP(bad_locked, SIGSEGV, "lock; xadd %%eax,(%%rdi)")
TRAP(bad_exchange, SIGSEGV, "xchg %%eax,(%%rdi)")
TRAP(bad_vector, SIGSEGV, "movups (%%rdi),%%xmm0")
TRAP(bad_string, SIGSEGV, "mov $5,%%ecx\n\trep stosb")
TRAP(bad_move, SIGSEGV, "mov %%rdi,%%rsi\n\tmov $5,%%ecx\n\trep movsl")
TRAP(bad_compare, SIGSEGV, "mov %%rdi,%%rsi\n\tmov $5,%%ecx\n\trepe cmpsb")
TRAP(bad_jump, SIGSEGV, "jmp *%%rdi")
TRAP(bad_jump_through, SIGSEGV, "jmp *(%%rdi)")
TRAP(bad_call, SIGSEGV, "push %%rdi\n\tret")
TRAP(bad_call_through, SIGSEGV, "call *(%%rdi)")
TRAP(bad_far, SIGSEGV, "lcall *(%%rdi)")
TRAP(bad_segment, SIGSEGV, "mov $0x1234,%%eax\n\tmov %%eax,%%fs")
TRAP(not_canonical, SIGSEGV, "mov $1,%%eax\n\tshl $62,%%rax\n\tmov (%%rax),%%eax")
TRAP(not_canonical_jump, SIGSEGV, "mov $1,%%eax\n\tshl $62,%%rax\n\tjmp *%%rax")
TRAP(not_canonical_return, SIGSEGV, "mov $1,%%eax\n\tshl $62,%%rax\n\tpush %%rax\n\tret")
TRAP(halt, SIGSEGV, "hlt")
TRAP(no_interrupts, SIGSEGV, "cli")
TRAP(port, SIGSEGV, "in $0x80,%%al")
TRAP(port_string, SIGSEGV, "mov $5,%%ecx\n\trep insb")
TRAP(read_msr, SIGSEGV, "rdmsr")
TRAP(read_cr, SIGSEGV, "mov %%cr0,%%rax")
TRAP(read_dr, SIGSEGV, "mov %%dr0,%%rax")
TRAP(no_invlpg, SIGSEGV, "invlpg (%%rsp)")
TRAP(no_lgdt, SIGSEGV, "lgdt (%%rsp)")
TRAP(no_lidt, SIGSEGV, "lidt (%%rdi)")
TRAP(no_wbinvd, SIGSEGV, "wbinvd")
TRAP(no_swapgs, SIGSEGV, "swapgs")
TRAP(no_clts, SIGSEGV, "clts")
TRAP(no_lldt, SIGSEGV, "lldt %%ax")
TRAP(no_ltr, SIGSEGV, "ltr %%ax")
TRAP(no_sysret, SIGSEGV, "sysretq")
TRAP(no_xsetbv, SIGSEGV, "xsetbv")
TRAP(bad_int, SIGSEGV, "int $0x21")
TRAP(divide, SIGFPE, "div %%ecx")
TRAP(divide_by_memory, SIGFPE, "movl $0,-8(%%rsp)\n\tidivl -8(%%rsp)")
TRAP(undefined, SIGILL, "ud2")
TRAP(bad_prefix, SIGILL, ".byte 0xf0\n\tnop")
TRAP(x87_wait, SIGFPE, "fnclex\n\tmovw $0x37b,-8(%%rsp)\n\tfldcw -8(%%rsp)\n\tfld1\n\tfldz\n\tfdivrp\n\tfwait")

/* The handler steps over what it cannot do, instead of jumping away. */
static void step_over(int signal, siginfo_t *info, void *context)
{
    ucontext_t *c = context;

    (void)signal, (void)info;
    c->uc_mcontext.gregs[REG_RIP] = c->uc_mcontext.gregs[REG_RBX];
}

/* It lets the access happen, and then the instruction is executed again. */
static void allow(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    if (mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE))
        fail("mprotect");
}

static void on_fault(void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

    sigaction(SIGSEGV, &action, NULL);
}

static void stepped_over(void)
{
    on_fault(step_over);
    for (int i = 0; i < 10; i++)
        __asm__ volatile("lea 1f(%%rip),%%rbx\n\tmov %%eax,(%%rdi)\n1:\n\tnop" : : "D"(hole) : "rbx", "memory");
}

static void allowed(void)
{
    on_fault(allow);
    for (int i = 0; i < 8; i++)
        hole[(size_t)i * PAGE + 5] += 3;
    uint8_t *from = pages, *to = hole + 8 * PAGE + 11;
    size_t n = 7 * PAGE;

    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
}

static void nothing(int signal)
{
    (void)signal;
}

static void breakpoint(void)
{
    signal(SIGTRAP, nothing);
    for (int i = 0; i < 10; i++)
        __asm__ volatile("nop\n\tint3\n\tnop");
}

static void single_steps(void)
{
    signal(SIGTRAP, nothing);
    __asm__ volatile("pushfq\n\torq $0x100,(%%rsp)\n\tpopfq\n\tnop\n\tmov %%rsp,%%rax\n\tnop\n\t"
                     "pushfq\n\tandq $~0x100,(%%rsp)\n\tpopfq\n\tnop" : : : "rax", "memory", "cc");
}

/* System calls that the kernel's own accesses to user memory fail in, at once or half-way. */
static void bad_pointers(void)
{
    char path[] = "/dev/zero";
    int zero = open(path, O_RDONLY), pipes[2];
    struct iovec parts[2] = { { pages, 3 * PAGE + 5 }, { hole, PAGE } };

    if (mprotect(pages + 20 * PAGE, PAGE, PROT_NONE) || pipe(pipes))
        fail("mprotect");
    for (int i = 0; i < 5; i++) {
        if (syscall(SYS_open, hole, O_RDONLY) != -1 || syscall(SYS_uname, hole) != -1)
            fail("no EFAULT");
        syscall(SYS_read, zero, pages + 18 * PAGE + 100 - i, 4 * PAGE);
        syscall(SYS_write, pipes[1], pages + 19 * PAGE - 7, 2 * PAGE);
        syscall(SYS_read, pipes[0], pages + 20 * PAGE - 9 - i, PAGE);
        syscall(SYS_readv, zero, parts, 2);
        syscall(SYS_stat, path, hole);
        syscall(SYS_stat, pages + 20 * PAGE - 4, pages);
        syscall(SYS_rt_sigaction, SIGUSR1, hole, NULL, 8);
        syscall(SYS_clock_gettime, 0, hole);
        syscall(SYS_futex, hole, 1, 1);
    }
}

/* String operations of the kernel that fault again and again while they copy. */
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
        int pipes[2];

        if (pipe(pipes) || write(pipes[1], pages + 61 * PAGE + 50, 8000) != 8000 ||
            read(pipes[0], pages + 41 * PAGE + 50, 8000) != 8000)
            fail("pipe");
        close(pipes[0]);
        close(pipes[1]);
    }
    int zero = open("/dev/zero", O_RDONLY);

    madvise(pages, 64 * PAGE, MADV_DONTNEED);
    if (read(zero, pages + 77, 50 * PAGE) != 50 * PAGE)
        fail("read");
    close(zero);
    close(from);
}

/* Long enough for some ticks of the timer, and nearly all of it string operations. */
static void ticks_in_copies(void)
{
    int zero = open("/dev/zero", O_RDONLY);

    for (int i = 0; i < 160; i++)
        if (read(zero, pages, 64 * PAGE) != 64 * PAGE)
            fail("read");
    close(zero);
    int from = memfd_create("data", 0);

    if (from < 0 || ftruncate(from, 64 * PAGE))
        fail("memfd_create");
    for (int i = 0; i < 160; i++)
        if (pread(from, pages, 64 * PAGE, 0) != 64 * PAGE)
            fail("pread");
    close(from);
}

#define CASE(name, go) { name, catch_all, go, false }

const struct corner trap_corners[] = {
    CASE("bad-load", bad_load), CASE("bad-store", bad_store), CASE("bad-add", bad_add),
    CASE("bad-locked", bad_locked), CASE("bad-exchange", bad_exchange), CASE("bad-vector", bad_vector),
    CASE("bad-string", bad_string), CASE("bad-move", bad_move), CASE("bad-compare", bad_compare),
    CASE("bad-jump", bad_jump), CASE("bad-jump-through", bad_jump_through), CASE("bad-call", bad_call),
    CASE("bad-call-through", bad_call_through), CASE("bad-far", bad_far), CASE("bad-segment", bad_segment),
    CASE("not-canonical", not_canonical), CASE("not-canonical-jump", not_canonical_jump),
    CASE("not-canonical-return", not_canonical_return), CASE("halt", halt), CASE("no-interrupts", no_interrupts),
    CASE("port", port), CASE("port-string", port_string), CASE("read-msr", read_msr), CASE("read-cr", read_cr),
    CASE("read-dr", read_dr), CASE("no-invlpg", no_invlpg), CASE("no-lgdt", no_lgdt), CASE("no-lidt", no_lidt),
    CASE("no-wbinvd", no_wbinvd), CASE("no-swapgs", no_swapgs), CASE("no-clts", no_clts), CASE("no-lldt", no_lldt),
    CASE("no-ltr", no_ltr), CASE("no-sysret", no_sysret), CASE("no-xsetbv", no_xsetbv), CASE("bad-int", bad_int),
    CASE("divide", divide), CASE("divide-by-memory", divide_by_memory), CASE("undefined", undefined),
    CASE("bad-prefix", bad_prefix), CASE("x87-wait", x87_wait), CASE("stepped-over", stepped_over),
    CASE("allowed", allowed), CASE("breakpoint", breakpoint), CASE("single-steps", single_steps),
    CASE("bad-pointers", bad_pointers), CASE("copies-to-new-pages", copies_to_new_pages),
    CASE("ticks-in-copies", ticks_in_copies),
    { 0 },
};
