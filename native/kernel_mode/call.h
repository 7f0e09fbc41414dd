/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Direct calls of a kernel that runs this program in kernel mode: what the parts offer each other. Names begin with
 * kc_, since all this is linked into programs that have names of their own.
 */
#ifndef KDELTA_KERNEL_MODE_CALL_H
#define KDELTA_KERNEL_MODE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 4096
#define ROUND_UP(bytes) (((uint64_t)(bytes) + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES)
#define SEGMENTS_MOST 4
#define CHAIN_MOST 8 /* instructions that are moved to a stub */

/* What became of a place where `syscall` stands. */
enum site_state {
    SITE_JUMPS,      /* rewritten: a jump to its stub */
    SITE_HOPS,       /* rewritten: a short jump to padding nearby, and from there to its stub */
    SITE_SIGRETURN,  /* left: debuggers and unwinders know these bytes */
    SITE_NO_UNIT,    /* left: no unwind information says where its function begins */
    SITE_UNREADABLE, /* left: an instruction before it in its function is not known */
    SITE_NO_ROOM,    /* left: nothing before it can be moved, or there is no padding near for a hop */
    SITE_VDSO,       /* left: the kernel's own code in the program */
    SITE_STATES,
    SITE_NONE, /* no instruction: its bytes are part of others */
};

struct span {
    uint8_t *begin, *end;
};

/* A program or library in memory. */
struct module {
    const char *name;
    uint8_t *base; /* where its address 0 is */
    struct span all;                /* from its lowest address to its highest */
    struct span text[SEGMENTS_MOST]; /* its executable segments */
    unsigned texts;
    const uint8_t *unwind_table; /* .eh_frame_hdr, or NULL */
    const uint8_t *build_id;     /* or NULL */
    unsigned build_id_bytes;
    bool vdso;
};

struct site {
    uint8_t *at;   /* its `syscall`, which stays */
    uint8_t *from; /* from here to there is moved; the jump is put here */
    uint8_t *hole; /* of SITE_HOPS: padding of HOLE_BYTES */
    enum site_state state;
};

#define HOLE_BYTES 5 /* a jump by 32 bits */

/* How the entry is called, by the environment's KDELTA_CALL. */
enum call_mode { CALL_NONE, CALL_DIRECT, CALL_SKIP, CALL_TEST };

/* For tests and debuggers. `sites` are all, `left` those not rewritten by their state. */
struct kdelta_call_report {
    uint32_t mode, modules, sites, rewritten;
    uint32_t by_state[SITE_STATES];
};
extern struct kdelta_call_report kdelta_call_report;

/* units.c: the functions of a module, by its unwind information. The padding is not that of `others`. */
bool kc_unit_of(const struct module *module, const uint8_t *pc, struct span *unit);
uint8_t *kc_padding_near(const struct module *module, const uint8_t *jump, const struct site *others, unsigned count);

/* sites.c: finds the sites of a segment in order of address; `sites` has room for kc_sites_most() */
unsigned kc_sites_most(struct span text);
unsigned kc_sites_find(const struct module *module, struct span text, struct site *sites);

/* stubs.c: where sites jump to. Each page of stubs begins with the entry's address. */
uint64_t kc_stubs_bytes(unsigned sites);
bool kc_stubs_make(struct span room, struct site *sites, unsigned count, enum call_mode mode, uint64_t entry);

/* memory.c: raw system calls, since a wrapper may be what is being rewritten */
long kc_raw_call(long number, long a, long b, long c, long d, long e, long f);
extern const uint8_t kc_raw_call_site[];
uint8_t *kc_memory_near(const struct module *module, uint64_t bytes); /* to be written, or NULL */
void *kc_memory_any(uint64_t bytes);
void kc_memory_protect(struct span bytes, int protection);

/* modules.c: what is loaded now; at most MODULES_MOST */
#define MODULES_MOST 512
unsigned kc_modules_find(struct module *modules);

/* kept.c: files of rewritten libraries in the folder that KDELTA_CALL_CACHE names */
#define KEPT_BASE_LEAST (1ull << 32)
bool kc_kept_use(const char *folder, const struct module *module, enum call_mode mode, uint64_t entry,
                 uint32_t *by_state);
void kc_kept_add(const char *folder, const struct module *module, struct span stubs, enum call_mode mode,
                 uint64_t entry, const uint32_t *by_state);

/* report.c */
enum talk { TALK_NOT, TALK, TALK_OF_EACH };
void kc_report_left(const struct module *module, const struct site *site);
void kc_report_sites(const struct module *module, const uint32_t *by_state, enum talk talk);
void kc_report_end(const char *mode, enum talk talk);
_Noreturn void kc_fail(const char *what, const char *more);

#ifdef KDELTA_CALL_TEST
/* fake.c: an entry for tests without such a kernel */
uint64_t kc_fake_entry(const char *counts_path);
#endif

#endif
