/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rewritten libraries, kept in files: finding and copying what a library needs costs millions of instructions, which
 * only the first program that uses it pays. Later ones map its text and its stubs, as far from each other as they were.
 * Of a program or library without any system call it is only kept that it has none.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "call.h"

#define MAGIC 0x31746365726964ull /* "direct1" */
#define PATH_BYTES 256

/* The first page of a file; the text follows, and then the stubs. */
struct kept {
    uint64_t magic, entry, mode;
    uint64_t text_at, text_bytes;   /* from the module's address 0 */
    uint64_t stubs_below, stubs_bytes;
    uint32_t by_state[SITE_STATES];
};

static bool failed(long result)
{
    return result < 0 && result > -PAGE_BYTES;
}

static bool has_stubs(const uint32_t *by_state)
{
    return by_state[SITE_JUMPS] + by_state[SITE_HOPS];
}

/* A program at a fixed address has little room before it, and its stubs may be at another distance next time. */
static bool can_be_kept(const struct module *module, const uint32_t *by_state)
{
    return !((uint64_t)module->text[0].begin % PAGE_BYTES) &&
           (!has_stubs(by_state) || (uint64_t)module->base > KEPT_BASE_LEAST);
}

/* FOLDER/BUILD-ID and `suffix`; false when it has none, or that is too long. */
static bool path_of(char *path, const char *folder, const struct module *module, const char *suffix)
{
    size_t used = strlen(folder);

    if (!module->build_id || module->texts != 1 || used + 2 * module->build_id_bytes + 8 > PATH_BYTES)
        return false;
    memcpy(path, folder, used);
    path[used++] = '/';
    for (unsigned i = 0; i < module->build_id_bytes; i++) {
        path[used++] = "0123456789abcdef"[module->build_id[i] >> 4];
        path[used++] = "0123456789abcdef"[module->build_id[i] & 15];
    }
    memcpy(path + used, suffix, strlen(suffix) + 1);
    return true;
}

static bool fits(const struct kept *kept, const struct module *module, enum call_mode mode, uint64_t entry)
{
    return kept->magic == MAGIC && kept->entry == entry && kept->mode == mode &&
           kept->text_at == (uint64_t)(module->text[0].begin - module->base) &&
           kept->text_bytes == ROUND_UP(module->text[0].end - module->text[0].begin);
}

/* The stubs come first: they need a place that is free, and without them nothing has changed yet. */
static bool map_both(int file, const struct kept *kept, const struct module *module)
{
    const long protection = PROT_READ | PROT_EXEC;
    long stubs = (long)module->base - (long)kept->stubs_below, got;

    got = kc_raw_call(SYS_mmap, stubs, (long)kept->stubs_bytes, protection, MAP_PRIVATE | MAP_FIXED_NOREPLACE, file,
                      (long)(PAGE_BYTES + kept->text_bytes));
    if (got != stubs)
        return false;
    got = kc_raw_call(SYS_mmap, (long)module->text[0].begin, (long)kept->text_bytes, protection,
                      MAP_PRIVATE | MAP_FIXED, file, PAGE_BYTES);
    if (failed(got))
        kc_fail("a library's text cannot be mapped", module->name);
    return true;
}

/* Whether the module's text is now a kept one; `by_state` are its sites. */
bool kc_kept_use(const char *folder, const struct module *module, enum call_mode mode, uint64_t entry,
                 uint32_t *by_state)
{
    char path[PATH_BYTES];
    struct kept kept;
    bool used;
    long file;

    if (!path_of(path, folder, module, ""))
        return false;
    file = kc_raw_call(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0, 0);
    if (failed(file))
        return false;
    used = kc_raw_call(SYS_read, file, (long)&kept, sizeof(kept), 0, 0, 0) == sizeof(kept) &&
           fits(&kept, module, mode, entry) &&
           (!has_stubs(kept.by_state) || map_both((int)file, &kept, module));
    kc_raw_call(SYS_close, file, 0, 0, 0, 0, 0);
    if (used)
        memcpy(by_state, kept.by_state, sizeof(kept.by_state));
    return used;
}

static bool put(long file, const void *bytes, uint64_t size)
{
    return kc_raw_call(SYS_write, file, (long)bytes, (long)size, 0, 0, 0) == (long)size;
}

/* Keeps what was rewritten. What fails leaves no file, and costs only what the next program has to do again. */
void kc_kept_add(const char *folder, const struct module *module, struct span stubs, enum call_mode mode,
                 uint64_t entry, const uint32_t *by_state)
{
    static union {
        struct kept kept;
        uint8_t page[PAGE_BYTES];
    } first;
    char path[PATH_BYTES], temporary[PATH_BYTES];
    long file;

    if (!can_be_kept(module, by_state) || !path_of(path, folder, module, "") ||
        !path_of(temporary, folder, module, ".new"))
        return;
    first.kept = (struct kept){
        .magic = MAGIC,
        .entry = entry,
        .mode = mode,
        .text_at = (uint64_t)(module->text[0].begin - module->base),
        .text_bytes = ROUND_UP(module->text[0].end - module->text[0].begin),
        .stubs_below = (uint64_t)(module->base - stubs.begin),
        .stubs_bytes = (uint64_t)(stubs.end - stubs.begin),
    };
    memcpy(first.kept.by_state, by_state, sizeof(first.kept.by_state));
    kc_raw_call(SYS_mkdir, (long)folder, 0755, 0, 0, 0, 0);
    file = kc_raw_call(SYS_open, (long)temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644, 0, 0, 0);
    if (failed(file))
        return;
    if (put(file, &first, sizeof(first)) &&
        (!has_stubs(by_state) || (put(file, module->text[0].begin, first.kept.text_bytes) &&
                                  put(file, stubs.begin, first.kept.stubs_bytes))))
        kc_raw_call(SYS_rename, (long)temporary, (long)path, 0, 0, 0, 0);
    else
        kc_raw_call(SYS_unlink, (long)temporary, 0, 0, 0, 0, 0);
    kc_raw_call(SYS_close, file, 0, 0, 0, 0, 0);
}
