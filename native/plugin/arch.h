/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the counting needs to know of one instruction; each architecture answers it from the bytes. */
#ifndef KDELTA_ARCH_H
#define KDELTA_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The marks of kdelta.h. */
enum mark {
    MARK_NONE,
    MARK_ARM,     /* instrumentation will be wanted soon */
    MARK_BEGIN,   /* a region starts; the bytes sent before are its name */
    MARK_ITER,    /* an iteration ends */
    MARK_END,     /* the region ends */
    MARK_JOIN,    /* the calling task belongs to the measured work */
    MARK_MESSAGE, /* the bytes sent before are a message to the host */
    MARK_JOB,     /* the guest's init asks for a piece of its job */
    MARK_OFF,     /* the guest is done */
    MARK_KINDS,
};

struct insn_facts {
    enum mark mark;
    bool argument;         /* the tagged load: its address carries a byte */
    bool can_fault;        /* may leave the block at itself; in doubt: true */
    bool always_there;     /* in kernel code: what it accesses is always mapped, and memory */
    bool leaves_kernel;    /* returns to user code: a fault after it is the fetch of its target */
    bool trap_counts;      /* in user code: QEMU counts it before it finds that it is not allowed */
    bool jumps;            /* what follows is not always the next instruction */
    bool frame_return;     /* ends an exception or interrupt frame */
    bool calls;            /* traps on purpose, and is executed: a system call */
    bool calls_function, returns; /* keeps a return address; goes to one */
    bool optional;         /* it may be executed without making its accesses: its loads and stores are those of one access */
    bool pair;             /* QEMU makes one access or two for its two registers */
    bool repeats;          /* a pass an element and one to find that none is left, each counted by QEMU as an instruction */
    uint8_t loads, stores; /* memory operands read and written */
    uint8_t special;       /* index into arch->special_names, 0: none */
    uint8_t reads;         /* registers say which of its kind it is: the architecture's number of which, 0: its bytes do */
    uint32_t detail;       /* which of its kind it is; 0: that is not distinguished, or registers say it */
    bool is_string;        /* a string operation: its loads and stores are an element's */
    uint8_t element_bytes; /* of a string operation */
    bool switch_store;     /* saves the stack pointer of the task that leaves */
    bool switch_load;      /* loads the stack pointer of the task that comes */
};

/* What an instruction's meaning depends on besides its bytes. */
struct stretch {
    bool thumb;
    uint8_t conditional; /* instructions that are left of an IT block */
};

/* One instruction of a block. */
struct insn {
    uint64_t vaddr;
    const uint8_t *bytes;
    size_t size;
    struct insn_facts facts;
};

struct arch {
    const char *target_name; /* QEMU's name of the emulator's target */
    uint64_t kernel_start;   /* lowest address of kernel code; a guess where there is kernel_start_of */
    uint64_t (*kernel_start_of)(uint64_t text); /* the same, by where the kernel's text starts; or NULL */
    uint64_t helpers_start, helpers_bytes;      /* above kernel_start, but executed by user programs */
    /* Where the kernel's image is mapped, as one piece; so many bytes at most. Without bytes: as its symbols say. */
    uint64_t image_start, image_bytes;
    unsigned page_bytes;
    unsigned max_insn_bytes;
    bool drops_page_crossing; /* QEMU may show a last instruction that it then leaves out */
    bool one_entry;           /* exceptions and interrupts enter the kernel at the same place */
    bool returns_by_stack;    /* calls push the return address, and returns pop it */
    const char *const *special_names; /* ends with NULL */
    /* Which of its kind an instruction with `reads` is, or 0, by registers; and what stands after the kind in its name. Or NULL. */
    uint64_t (*detail)(const struct insn_facts *facts, uint64_t (*value)(const char *reg));
    void (*name_detail)(uint8_t special, uint64_t detail, char *name, size_t size);
    const char *(*device_at)(uint64_t address); /* which device every machine has at that physical address, or NULL. Or NULL. */
    /* At the start of a block, whose instructions have no facts yet; and how many of its bytes are an instruction's own. Or NULL. */
    void (*enter)(struct stretch *stretch, const struct insn *insns, size_t n);
    size_t (*insn_bytes)(const uint8_t *bytes, size_t size, const struct stretch *stretch);
    void (*classify)(const uint8_t *bytes, size_t size, struct stretch *stretch, struct insn_facts *facts);
    /* Whether code puts another address in place of the return address: it was called to make a jump. Or NULL. */
    bool (*overwrites_return)(const uint8_t *bytes, size_t size);
};

extern const struct arch arch_x86_64, arch_arm, arch_aarch64, arch_riscv64;

static inline bool arch_is_kernel(const struct arch *arch, uint64_t vaddr)
{
    return vaddr >= arch->kernel_start && vaddr - arch->helpers_start >= arch->helpers_bytes;
}

#endif
