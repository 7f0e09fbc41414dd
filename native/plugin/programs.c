/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which programs are the same, by their code.
 *
 * The plugin does not know which file a task executes. Two programs are taken for one when their own code, which lies lowest, was first
 * entered at the same address, their tasks began at the same one, and no byte of user code that both executed differs. Addresses of
 * programs repeat, since they are not randomised; where they are, or where the same library was put elsewhere, programs stay apart,
 * and the reader of the tree puts them together by their names. A program that has not ended may still show how it differs.
 */
#include "programs.h"

#include "frames.h"
#include "nodes.h"

#define PAGE_BYTES 4096u
#define LEAST_PAGES 256u
#define GAP_BYTES (UINT64_C(64) << 20) /* between a program's own code and that of libraries, at least */

/* Bytes of code, as far as they are known. */
struct page {
    uint64_t start;
    uint8_t bytes[PAGE_BYTES];
    bool known[PAGE_BYTES];
};

/* The code of programs that are one. */
struct image {
    uint32_t number;         /* of the first of them */
    uint64_t began, entered; /* addresses */
    struct page **pages;     /* open-addressed by start */
    size_t n_pages, n_slots;
};

/* What programs executed of user code: of number n the blocks from first[n] to before first[n + 1], as they were first executed. */
struct evidence {
    struct block **blocks;
    uint32_t *first;
};

static uint32_t programs;         /* 0 is that of a task of which it is not known yet */
static uint32_t *waiting;         /* by number: tasks of it that have not started */
static struct followed *watched;

uint32_t program_new(void)
{
    programs++;
    waiting = must(realloc(waiting, (programs + 1) * sizeof *waiting));
    waiting[0] = waiting[programs] = 0;
    return programs;
}

void program_forks(uint32_t number)
{
    waiting[number]++;
}

void program_starts(uint32_t number)
{
    waiting[number] -= waiting[number] > 0;
}

void programs_watch(struct followed *f)
{
    f->next = watched;
    watched = f;
}

static bool *going_on(void)
{
    bool *live = zalloc(programs + 1, sizeof *live);

    for (const struct followed *f = watched; f; f = f->next)
        live[f->number] |= !f->ended;
    for (uint32_t n = 0; n <= programs; n++)
        live[n] |= waiting[n] > 0;
    return live;
}

static struct evidence gather(void)
{
    struct evidence e = { .first = zalloc(programs + 2, sizeof *e.first) };
    uint32_t *of_node = tree_programs(), *next = zalloc(programs + 2, sizeof *next);

    for (uint32_t i = 1; i <= tree.n_cells; i++)
        if (tree.cells[i]->block && tree.cells[i]->block->user)
            e.first[of_node[tree.cells[i]->node] + 1]++;
    for (uint32_t n = 0; n <= programs; n++)
        e.first[n + 1] += e.first[n];
    memcpy(next, e.first, (programs + 2) * sizeof *next);
    e.blocks = zalloc(e.first[programs + 1], sizeof *e.blocks);
    for (uint32_t i = 1; i <= tree.n_cells; i++)
        if (tree.cells[i]->block && tree.cells[i]->block->user)
            e.blocks[next[of_node[tree.cells[i]->node]]++] = tree.cells[i]->block;
    free(of_node);
    free(next);
    return e;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The address at which the code that lies lowest was first entered. */
static uint64_t entry_of(struct block *const *blocks, uint32_t n)
{
    uint64_t *sorted = zalloc(n, sizeof *sorted), end;
    uint32_t i = 0;

    for (; i < n; i++)
        sorted[i] = blocks[i]->origin->vaddr;
    qsort(sorted, n, sizeof *sorted, by_address);
    for (i = 0; i + 1 < n && sorted[i + 1] - sorted[i] < GAP_BYTES;)
        i++;
    end = sorted[i];
    free(sorted);
    for (i = 0; blocks[i]->origin->vaddr > end;)
        i++;
    return blocks[i]->origin->vaddr;
}

static size_t slot_of_page(const struct image *image, uint64_t start)
{
    size_t i = mixed(start) & (image->n_slots - 1);

    while (image->pages[i] && image->pages[i]->start != start)
        i = (i + 1) & (image->n_slots - 1);
    return i;
}

static void more_pages(struct image *image)
{
    struct page **old = image->pages;
    size_t n = image->n_slots;

    image->n_slots = n ? 2 * n : LEAST_PAGES;
    image->pages = zalloc(image->n_slots, sizeof *image->pages);
    for (size_t i = 0; i < n; i++)
        if (old[i])
            image->pages[slot_of_page(image, old[i]->start)] = old[i];
    free(old);
}

static struct page *page_at(struct image *image, uint64_t vaddr, bool make)
{
    uint64_t start = vaddr & ~(uint64_t)(PAGE_BYTES - 1);
    size_t slot = slot_of_page(image, start);

    if (image->pages[slot] || !make)
        return image->pages[slot];
    struct page *page = zalloc(1, sizeof *page);

    page->start = start;
    image->pages[slot] = page;
    if (2 * ++image->n_pages > image->n_slots)
        more_pages(image);
    return page;
}

static void learn(struct image *image, const struct origin *o)
{
    for (uint32_t i = 0; i < o->n_bytes; i++) {
        uint64_t at = o->vaddr + i;
        struct page *page = page_at(image, at, true);

        page->bytes[at % PAGE_BYTES] = o->bytes[i];
        page->known[at % PAGE_BYTES] = true;
    }
}

static bool agrees(struct image *image, const struct origin *o)
{
    const struct page *page = NULL;

    for (uint32_t i = 0; i < o->n_bytes; i++) {
        uint64_t at = o->vaddr + i;

        if (!i || !(at % PAGE_BYTES))
            page = page_at(image, at, false);
        if (page && page->known[at % PAGE_BYTES] && page->bytes[at % PAGE_BYTES] != o->bytes[i])
            return false;
    }
    return true;
}

/* Whether that program may be one of the image's; if so, its code is now the image's, too. */
static bool joins(struct image *image, uint64_t entered, struct block *const *blocks, uint32_t n)
{
    if (image->entered != entered || image->began != blocks[0]->origin->vaddr)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!agrees(image, blocks[i]->origin))
            return false;
    for (uint32_t i = 0; i < n; i++)
        learn(image, blocks[i]->origin);
    return true;
}

static void free_images(struct image *images, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (size_t slot = 0; slot < images[i].n_slots; slot++)
            free(images[i].pages[slot]);
        free(images[i].pages);
    }
    free(images);
}

/* Fills in what each number becomes; false when all stay what they are. */
static bool same_programs(const struct evidence *e, const bool *live, uint32_t *to)
{
    struct image *images = zalloc(programs + 1, sizeof *images);
    uint32_t n_images = 0, i;
    bool found = false;

    for (uint32_t number = 1; number <= programs; number++) {
        struct block *const *blocks = e->blocks + e->first[number];
        uint32_t n = e->first[number + 1] - e->first[number];

        if (!n || (live && live[number]))
            continue;
        uint64_t entered = entry_of(blocks, n);

        for (i = 0; i < n_images && !joins(&images[i], entered, blocks, n);)
            i++;
        if (i == n_images) {
            images[n_images++] = (struct image){ number, blocks[0]->origin->vaddr, entered, NULL, 0, 0 };
            more_pages(&images[i]);
            for (uint32_t k = 0; k < n; k++)
                learn(&images[i], blocks[k]->origin);
        }
        to[number] = images[i].number;
        found |= to[number] != number;
    }
    free_images(images, n_images);
    return found;
}

void programs_merge(bool all, struct cell **kept)
{
    bool *live = all ? NULL : going_on();
    struct evidence e = gather();
    uint32_t *to = zalloc(programs + 1, sizeof *to);

    for (uint32_t number = 0; number <= programs; number++)
        to[number] = number;
    if (same_programs(&e, live, to)) {
        tree_renumber(to, kept);
        for (struct followed *f = watched; live && f; f = f->next)
            f->number = to[f->number]; /* of a task that ends: there is a rest of it to come */
    }
    free(live);
    free(e.blocks);
    free(e.first);
    free(to);
    nodes_looked();
}
