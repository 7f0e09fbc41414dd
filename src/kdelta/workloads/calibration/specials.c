/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times special instructions that programs may execute, each in a loop that waits for it, besides the same loop without it:
 *
 *     specials CORE
 *     special KIND ARGUMENT N CYCLES E T R E T R ...
 *
 * E is what N turns of the empty loop took, T those with the instruction, R the reference loop of CYCLES cycles, in ticks. */
#include "start.h"
#include "timing.h"

enum { SAMPLES = 41, TOUCHED_PAGES = 64, MOST_BYTES = 65536 };

typedef void turns(unsigned long n, unsigned long argument);

static char from[MOST_BYTES + 64] __attribute__((aligned(4096))), to[MOST_BYTES + 64] __attribute__((aligned(4096)));

#define TURNS(name, ...)                                           \
    static void name(unsigned long n, unsigned long argument)      \
    {                                                              \
        for (unsigned long cell = 0; n; n--) {                     \
            __VA_ARGS__;                                           \
            __asm__ volatile("" : "+r"(cell), "+r"(argument));     \
        }                                                          \
    }
#define ASM(...) __asm__ volatile(__VA_ARGS__)

TURNS(empty, )
TURNS(getppid, system_call(NR_GETPPID, 0, 0, 0, 0, 0, 0))

/* The first touch of each of n new pages. */
static void touch(unsigned long n, unsigned long argument)
{
    for (unsigned long i = 0; i < n; i++)
        ((volatile char *)argument)[i * 4096] = 1;
}

static void sample(turns *run, unsigned long n, unsigned long argument, uint64_t *ticks)
{
    uint64_t begin;
    void *pages = NULL;

    begin = clock_ticks();
    empty(n, argument);
    ticks[0] = clock_ticks() - begin;
    if (run == touch)
        argument = (unsigned long)(pages = system_pages(n * 4096, 0));
    if (run == touch && !pages)
        return;
    begin = clock_ticks();
    run(n, argument);
    ticks[1] = clock_ticks() - begin;
    if (pages)
        system_call(NR_MUNMAP, (long)pages, (long)(n * 4096), 0, 0, 0, 0);
    ticks[2] = reference_ticks(timing_turns);
}

static void special(const char *kind, turns *run, unsigned long n, unsigned long argument)
{
    uint64_t ticks[3 * SAMPLES] = {0};

    run != touch ? run(n, argument) : (void)0;
    for (int i = 0; i < SAMPLES; i++) {
        wait_alone();
        sample(run, n, argument, ticks + 3 * i);
    }
    say("special ");
    say(kind);
    say(" ");
    say_number(run == touch ? 0 : argument);
    say(" ");
    say_number(n);
    say(" ");
    say_number(timing_turns * REFERENCE_CHAIN);
    for (int i = 0; i < 3 * SAMPLES; i++) {
        say(" ");
        say_number(ticks[i]);
    }
    say("\n");
    say_all();
}

#if defined(__x86_64__)
static char area[16384] __attribute__((aligned(64)));
static uint16_t selector;

TURNS(cpuid, uint32_t a = 0; uint32_t c = 0; ASM("cpuid" : "+a"(a), "+c"(c) : : "ebx", "edx"))
TURNS(lock_add, ASM("lock addq $1, %0" : "+m"(*(long *)from)))
TURNS(mfence, ASM("mfence" : : : "memory"))
TURNS(lfence, ASM("lfence" : : : "memory"))
TURNS(sfence, ASM("sfence" : : : "memory"))
TURNS(rdtsc, ASM("rdtsc" : : : "rax", "rdx"))
TURNS(pause_, ASM("pause"))
TURNS(verw, ASM("verw %0" : : "m"(selector) : "cc"))
TURNS(wrfsbase, ASM("wrfsbase %0" : : "r"(0ul)))
TURNS(wrgsbase, ASM("wrgsbase %0" : : "r"(0ul)))
TURNS(segment_load, ASM("mov %0, %%ds" : : "r"((uint32_t)selector)))
TURNS(xsave, ASM("xsave64 %0" : "+m"(area) : "a"(7), "d"(0) : "memory"))
TURNS(xrstor, ASM("xrstor64 %0" : : "m"(area), "a"(7), "d"(0)))
TURNS(rdrand, ASM("rdrand %0" : "=r"(cell) : : "cc"))
TURNS(rep_movs, unsigned long count = argument; char *source = from; char *target = to;
      ASM("rep movsb" : "+c"(count), "+S"(source), "+D"(target) : : "memory"))
TURNS(rep_stos, unsigned long count = argument; char *target = to; ASM("rep stosb" : "+c"(count), "+D"(target) : "a"(0) : "memory"))

static uint32_t cpuid_bit(uint32_t leaf, char which, int bit)
{
    uint32_t a = leaf, b, c = 0, d;

    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return (which == 'b' ? b : which == 'c' ? c : d) >> bit & 1;
}

static uintptr_t hwcap2(char **argv, int argc)
{
    uintptr_t *at = (uintptr_t *)(argv + argc + 1);

    while (*at++)
        ;
    for (; at[0]; at += 2)
        if (at[0] == 26) /* AT_HWCAP2 */
            return at[1];
    return 0;
}

static void all_specials(int argc, char **argv)
{
    static const unsigned long sizes[] = {16, 64, 256, 1024, 4096, 16384, 65536};

    __asm__ volatile("mov %%ds, %0" : "=r"(selector));
    special("syscall", getppid, 100, 0);
    special("cpuid", cpuid, 8, 0);
    special("lock", lock_add, 400, 0);
    special("mfence", mfence, 200, 0);
    special("lfence", lfence, 400, 0);
    special("sfence", sfence, 400, 0);
    special("rdtsc", rdtsc, 200, 0);
    special("pause", pause_, 100, 0);
    special("verw", verw, 50, 0);
    special("segment-load", segment_load, 200, 0);
    if (hwcap2(argv, argc) & 2) {
        special("wrfsbase", wrfsbase, 200, 0);
        special("wrgsbase", wrgsbase, 200, 0);
    }
    if (cpuid_bit(1, 'c', 27) && cpuid_bit(1, 'c', 28)) {
        special("xsave", xsave, 50, 7);
        special("xrstor", xrstor, 50, 7);
    }
    if (cpuid_bit(1, 'c', 30))
        special("rdrand", rdrand, 20, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        special("rep-movs", rep_movs, 16 + 16384 / sizes[i], sizes[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        special("rep-stos", rep_stos, 16 + 16384 / sizes[i], sizes[i]);
}

#elif defined(__aarch64__)
TURNS(dmb, ASM("dmb ish" : : : "memory"))
TURNS(dsb, ASM("dsb ish" : : : "memory"))
TURNS(isb, ASM("isb" : : : "memory"))
TURNS(yield, ASM("yield"))
TURNS(timer, ASM("mrs %0, cntvct_el0" : "=r"(cell)))
TURNS(thread_id, ASM("mrs %0, tpidr_el0" : "=r"(cell)))
TURNS(ldar, ASM("ldar %0, [%1]" : "=r"(cell) : "r"(from) : "memory"))
TURNS(stlr, ASM("stlr %0, [%1]" : : "r"(cell), "r"(from) : "memory"))
TURNS(exclusive, uint32_t failed; ASM("1: ldxr %0, [%2]\n\tstxr %w1, %0, [%2]\n\tcbnz %w1, 1b" : "=&r"(cell), "=&r"(failed) : "r"(from) : "memory"))

static void all_specials(int argc, char **argv)
{
    (void)argc, (void)argv;
    special("svc", getppid, 100, 0);
    special("dmb", dmb, 200, 0);
    special("dsb", dsb, 200, 0);
    special("isb", isb, 200, 0);
    special("yield", yield, 200, 0);
    special("timer", timer, 200, 0);
    special("thread-id", thread_id, 200, 0);
    special("ldar", ldar, 200, 0);
    special("stlr", stlr, 200, 0);
    special("stxr", exclusive, 200, 0);
}

#elif defined(__arm__)
TURNS(dmb, ASM("dmb ish" : : : "memory"))
TURNS(dsb, ASM("dsb ish" : : : "memory"))
TURNS(isb, ASM("isb" : : : "memory"))
TURNS(yield, ASM("yield"))
TURNS(thread_id, ASM("mrc p15, 0, %0, c13, c0, 3" : "=r"(cell)))
TURNS(exclusive, uint32_t failed; ASM("1: ldrex %0, [%2]\n\tstrex %1, %0, [%2]\n\tcmp %1, #0\n\tbne 1b" : "=&r"(cell), "=&r"(failed) : "r"(from) : "memory", "cc"))

static void all_specials(int argc, char **argv)
{
    (void)argc, (void)argv;
    special("svc", getppid, 100, 0);
    special("dmb", dmb, 200, 0);
    special("dsb", dsb, 200, 0);
    special("isb", isb, 200, 0);
    special("yield", yield, 200, 0);
    special("thread-id", thread_id, 200, 0);
    special("strex", exclusive, 200, 0);
}

#else
TURNS(fence, ASM("fence" : : : "memory"))
TURNS(fence_i, ASM("fence.i" : : : "memory"))
TURNS(counter, ASM("rdtime %0" : "=r"(cell)))
TURNS(amo, ASM("amoadd.d %0, %0, (%1)" : "+r"(cell) : "r"(from) : "memory"))
TURNS(reserved, uint64_t failed; ASM("1: lr.d %0, (%2)\n\tsc.d %1, %0, (%2)\n\tbnez %1, 1b" : "=&r"(cell), "=&r"(failed) : "r"(from) : "memory"))

static void all_specials(int argc, char **argv)
{
    (void)argc, (void)argv;
    special("ecall", getppid, 100, 0);
    special("fence", fence, 200, 0);
    special("fence.i", fence_i, 100, 0);
    special("csr-counter", counter, 200, 0);
    special("amo", amo, 200, 0);
    special("sc", reserved, 200, 0);
}
#endif

int main(int argc, char **argv)
{
    if (argc < 2 || system_pin(number_of(argv[1])) < 0)
        return 3;
    for (size_t i = 0; i < sizeof from; i += 4096)
        ((volatile char *)from)[i] = ((volatile char *)to)[i] = 1;
    find_level();
    timing_patience = patience_of(argv + argc + 1);
    all_specials(argc, argv);
    special("page-fault", touch, TOUCHED_PAGES, 0);
    say("done\n");
    say_all();
    return 0;
}
