/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes, threads and signals. */
#include "bench.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>

#define LARGE_BYTES (16 * MIB)
#define LARGE_NEEDS_BYTES (48 * MIB)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define TINY_ADDRESS 0x400000

static char tiny_path[4096 + 8];
static char *const tiny_argv[] = {"tiny", NULL}, *const tiny_env[] = {NULL};

#ifdef __aarch64__
#define STACK_BYTES (128 * KIB) /* the least that glibc takes there */
#else
#define STACK_BYTES (64 * KIB)
#endif

static pthread_attr_t thread_attributes;
static char thread_stack[STACK_BYTES] __attribute__((aligned(4096)));

static char *large;
static pid_t self;
static volatile sig_atomic_t signals_caught;

static void step_fork(void)
{
    pid_t child = (pid_t)must(fork());

    if (!child)
        _exit(0);
    must(waitpid(child, NULL, 0));
}

/* exit(0): the instructions, and what the ELF header says of them. */
#if defined(__x86_64__)
static const unsigned char exit_code[] = {0x31, 0xff, 0xb8, SYS_exit, 0, 0, 0, 0x0f, 0x05}; /* xor edi, edi; mov eax, N; syscall */
enum { TINY_MACHINE = EM_X86_64, TINY_FLAGS = 0 };
#elif defined(__arm__)
static const uint32_t exit_code[] = {0xe3a00000, 0xe3a07000 + SYS_exit, 0xef000000}; /* mov r0, 0; mov r7, N; svc 0 */
enum { TINY_MACHINE = EM_ARM, TINY_FLAGS = EF_ARM_EABI_VER5 };
#elif defined(__aarch64__)
static const uint32_t exit_code[] = {0xd2800000, 0xd2800008 + (SYS_exit << 5), 0xd4000001}; /* mov x0, 0; mov x8, N; svc 0 */
enum { TINY_MACHINE = EM_AARCH64, TINY_FLAGS = 0 };
#elif defined(__riscv)
static const uint32_t exit_code[] = {0x00000513, 0x00000893 + (SYS_exit << 20), 0x00000073}; /* li a0, 0; li a7, N; ecall */
enum { TINY_MACHINE = EM_RISCV, TINY_FLAGS = 0 };
#else
#error "the code of exit(0) on this architecture"
#endif

#define TINY_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

/* The smallest program: exit(0), in a file of one page. */
static bool tiny_setup(long unused)
{
    struct {
        ElfW(Ehdr) header;
        ElfW(Phdr) text, stack;
        unsigned char code[sizeof exit_code];
    } tiny = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, TINY_CLASS, ELFDATA2LSB, EV_CURRENT},
                   .e_type = ET_EXEC,
                   .e_machine = TINY_MACHINE,
                   .e_version = EV_CURRENT,
                   .e_flags = TINY_FLAGS,
                   .e_entry = TINY_ADDRESS + sizeof(ElfW(Ehdr)) + 2 * sizeof(ElfW(Phdr)),
                   .e_phoff = sizeof(ElfW(Ehdr)),
                   .e_ehsize = sizeof(ElfW(Ehdr)),
                   .e_phentsize = sizeof(ElfW(Phdr)),
                   .e_phnum = 2},
        .text = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = TINY_ADDRESS, .p_align = PAGE_BYTES},
        .stack = {.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W},
    };
    int fd;

    (void)unused;
    tiny.text.p_filesz = tiny.text.p_memsz = sizeof tiny;
    memcpy(tiny.code, exit_code, sizeof exit_code);
    snprintf(tiny_path, sizeof tiny_path, "%s/tiny", folder_path);
    fd = (int)must(open(tiny_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700));
    must(write(fd, &tiny, sizeof tiny));
    must(close(fd));
    return true;
}

static void step_vfork_exec(void)
{
    int status;
    pid_t child = vfork();

    if (!child) {
        execve(tiny_path, tiny_argv, tiny_env);
        _exit(127);
    }
    must(child);
    must(waitpid(child, &status, 0));
    if (status) {
        errno = ENOEXEC;
        fail(tiny_path);
    }
}

static void tiny_teardown(void)
{
    must(unlink(tiny_path));
}

static void *thread_main(void *nothing)
{
    return nothing;
}

/* With a stack of its own a thread costs no mapping, and the libc's cache of stacks stays out of it. */
static bool thread_setup(long unused)
{
    (void)unused;
    memset(thread_stack, 0, sizeof thread_stack);
    must(-pthread_attr_init(&thread_attributes));
    must(-pthread_attr_setstack(&thread_attributes, thread_stack, sizeof thread_stack));
    return true;
}

static void step_thread(void)
{
    pthread_t thread;

    must(-pthread_create(&thread, &thread_attributes, thread_main, NULL));
    must(-pthread_join(thread, NULL));
}

static void catch_signal(int number)
{
    (void)number;
    signals_caught++;
}

static bool signal_setup(long unused)
{
    struct sigaction action = {.sa_handler = catch_signal};

    (void)unused;
    self = getpid();
    must(sigaction(SIGUSR1, &action, NULL));
    return true;
}

static void step_signal(void)
{
    must(syscall(SYS_kill, self, SIGUSR1));
}

static void signal_teardown(void)
{
    if (!signals_caught)
        fail("no signal arrived");
    must((long)signal(SIGUSR1, SIG_DFL));
}

/* In small pages, whatever the kernel's policy for huge ones is: copying their entries is what a large process pays for. */
static bool large_setup(long unused)
{
    struct sysinfo info;

    (void)unused;
    must(sysinfo(&info));
    if (info.freeram * info.mem_unit < LARGE_NEEDS_BYTES) {
        dprintf(STDERR_FILENO, "syscalls: fork-large left out: it needs %ld MiB of free memory\n", LARGE_NEEDS_BYTES / MIB);
        return false;
    }
    large = (char *)must((long)mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(large, LARGE_BYTES, MADV_NOHUGEPAGE); /* a kernel without huge pages refuses, and is right */
    madvise(large, LARGE_BYTES, MADV_POPULATE_WRITE); /* cheaper than faults, where the kernel has it */
    for (long i = 0; i < LARGE_BYTES; i += PAGE_BYTES)
        large[i] = 1;
    return true;
}

static void large_teardown(void)
{
    must(munmap(large, LARGE_BYTES));
}

/* What a task leaves is freed after grace periods, some ticks later; only then are the lists of free objects as full as they stay. */
#define FREED_LATER 10

const struct operation process_operations[] = {
    {"fork-exit-wait", 50, FREED_LATER, .step = step_fork},
    {"fork-large", 8, .step = step_fork, .setup = large_setup, .teardown = large_teardown},
    {"vfork-exec", 100, FREED_LATER, .step = step_vfork_exec, .setup = tiny_setup, .teardown = tiny_teardown},
    {"thread-create-join", 250, 2 * FREED_LATER, .step = step_thread, .setup = thread_setup},
    {"signal-handler", 1000, .step = step_signal, .setup = signal_setup, .teardown = signal_teardown},
    {0},
};
