/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes and cells in tables by what distinguishes them. Memory is bounded by the limit on nodes. */
#include "nodes.h"

#define MOST_DEPTH 512u
#define CELLS_A_NODE 8u      /* the limit on cells, as a multiple of that on nodes */
#define LEAST_SLOTS (1u << 14)
#define MANY 8u              /* one part in so many of the limit is worth a first look at what is alike */

struct tree tree;
uint32_t nodes_epoch = 1;
uint32_t nodes_serial;

void nodes_want(uint64_t limit)
{
    tree.limit = limit < UINT32_MAX / (2 * CELLS_A_NODE) ? limit : UINT32_MAX / (2 * CELLS_A_NODE);
}

static void reset_ways(size_t n)
{
    free(tree.by_way.slots);
    tree.by_way.n_slots = n;
    tree.by_way.slots = zalloc(n, sizeof *tree.by_way.slots);
}

static void reset_places(size_t n)
{
    free(tree.by_place.slots);
    tree.by_place.n_slots = n;
    tree.by_place.slots = zalloc(n, sizeof *tree.by_place.slots);
    tree.by_place.shift = 64;
    for (; n > 1; n /= 2)
        tree.by_place.shift--;
}

static void empty(void)
{
    tree.arena = (struct arena){ 0 };
    tree.nodes = NULL;
    tree.cells = NULL;
    tree.nodes_capacity = tree.cells_capacity = tree.n_cells = 0;
    tree.n_nodes = 1;
    tree.n_touched = 0;
    reset_ways(LEAST_SLOTS);
    reset_places(LEAST_SLOTS);
    nodes_epoch++;
    nodes_serial++;
}

void nodes_forget(void)
{
    arena_free(&tree.arena);
    free(tree.nodes);
    free(tree.cells);
    empty();
    tree.folded = 0;
    nodes_looked();
}

/* From which number on it is worth while to look again; so the work stays in proportion. */
static uint32_t many(uint32_t n, uint64_t limit)
{
    uint64_t next = 2 * (uint64_t)n > limit / MANY ? 2 * (uint64_t)n : limit / MANY;

    if (next <= limit)
        return (uint32_t)next;
    return n < limit - limit / MANY ? (uint32_t)limit : UINT32_MAX;
}

void nodes_looked(void)
{
    tree.many_nodes = many(tree.n_nodes, tree.limit);
    tree.many_cells = many(tree.n_cells, CELLS_A_NODE / 2 * tree.limit);
}

bool nodes_are_many(void)
{
    return tree.n_nodes >= tree.many_nodes || tree.n_cells >= tree.many_cells;
}

static uint64_t hash_of_way(const struct way *w)
{
    uint64_t h = mixed((uint64_t)w->parent << 32 | w->task);

    return mixed(h ^ mixed(w->site + w->entry) ^ (w->block ? w->block->origin->vaddr : 0));
}

static bool is_same_way(const struct way *a, const struct way *b)
{
    return a->parent == b->parent && a->site == b->site && a->task == b->task && a->entry == b->entry &&
           a->site_is_return == b->site_is_return && !a->block == !b->block &&
           (!a->block || a->block->origin->vaddr == b->block->origin->vaddr);
}

static size_t slot_of_way(const struct way *way)
{
    size_t mask = tree.by_way.n_slots - 1, i = hash_of_way(way) & mask;

    while (tree.by_way.slots[i] && !is_same_way(&tree.nodes[tree.by_way.slots[i]].way, way))
        i = (i + 1) & mask;
    return i;
}

static void more_ways(void)
{
    reset_ways(2 * tree.by_way.n_slots);
    for (uint32_t node = 1; node < tree.n_nodes; node++)
        tree.by_way.slots[slot_of_way(&tree.nodes[node].way)] = node;
}

static void node_entered(uint32_t node)
{
    struct node *n = &tree.nodes[node];

    if (!n->entered || n->entered->epoch != nodes_epoch)
        n->entered = cell_of(node, NULL);
    n->entered->n++;
}

static uint32_t node_new(const struct way *way, size_t slot)
{
    if (tree.n_nodes == tree.nodes_capacity || !tree.nodes) {
        tree.nodes_capacity = tree.nodes_capacity ? 2 * tree.nodes_capacity : 4096;
        tree.nodes = must(realloc(tree.nodes, tree.nodes_capacity * sizeof *tree.nodes));
    }
    uint32_t node = tree.n_nodes++;

    tree.nodes[node] = (struct node){ .way = *way, .depth = way->parent ? tree.nodes[way->parent].depth + 1 : 0 };
    tree.by_way.slots[slot] = node;
    if (2 * tree.n_nodes > tree.by_way.n_slots)
        more_ways();
    return node;
}

/* Whether what is called below has no nodes of its own. */
static bool is_full(uint32_t parent)
{
    return tree.n_nodes > tree.limit || (parent && tree.nodes[parent].depth >= MOST_DEPTH);
}

/* What was found last of each few: calls come again and again. */
#define RECENT (1u << 12)

static struct recent {
    uint64_t site;
    const struct block *block;
    uint32_t serial, parent, node;
    enum entry entry;
} recents[RECENT];

static struct recent *recent_of(const struct way *w)
{
    uint64_t h = (w->site + w->parent * UINT64_C(0x9e3779b97f4a7c15)) ^ (uintptr_t)w->block / sizeof *w->block;

    return &recents[h * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

static bool is_recent(const struct recent *r, const struct way *w)
{
    return r->serial == nodes_serial && r->site == w->site && r->block == w->block && r->parent == w->parent &&
           r->entry == w->entry;
}

/* Roots are always made: there is one a task, and one an entry of interrupts. */
static uint32_t node_found(const struct way *way)
{
    size_t slot = slot_of_way(way);

    if (tree.by_way.slots[slot])
        return tree.by_way.slots[slot];
    if (!way->parent || way->entry == ENTRY_FOLDED || !is_full(way->parent))
        return node_new(way, slot);
    struct way folded = { .parent = way->parent, .entry = ENTRY_FOLDED };

    tree.folded++;
    return node_found(&folded);
}

uint32_t node_of(const struct way *way, bool count)
{
    struct recent *recent = recent_of(way);

    if (is_recent(recent, way)) {
        if (count)
            node_entered(recent->node);
        return recent->node;
    }
    if (way->parent && tree.nodes[way->parent].way.entry == ENTRY_FOLDED) {
        tree.folded += count;
        return way->parent;
    }
    uint32_t node = node_found(way);

    if (way->parent && !way->site_is_return && tree.nodes[node].way.entry == way->entry)
        *recent = (struct recent){ way->site, way->block, nodes_serial, way->parent, node, way->entry };
    if (count)
        node_entered(node);
    return node;
}

void node_hang(uint32_t node, const struct way *way)
{
    struct node *n = &tree.nodes[node];
    size_t slot;

    n->way.parent = way->parent;
    n->way.entry = way->entry;
    n->way.site = way->site;
    n->way.site_block = way->site_block;
    n->way.site_is_return = way->site_is_return;
    n->way.task = 0;
    slot = slot_of_way(&n->way);
    if (!tree.by_way.slots[slot]) /* otherwise there are two alike, which are one for the reader */
        tree.by_way.slots[slot] = node;
}

static struct place *place_of(uint32_t node, const struct block *block)
{
    uint64_t key = (uint64_t)node << 32 | (block ? block->id + 1 : 0);
    size_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> tree.by_place.shift;
    struct place *slots = tree.by_place.slots;

    while (slots[i].cell && slots[i].key != key)
        i = (i + 1) & (tree.by_place.n_slots - 1);
    slots[i].key = key;
    return &slots[i];
}

static void more_places(void)
{
    reset_places(2 * tree.by_place.n_slots);
    for (uint32_t i = 1; i <= tree.n_cells; i++)
        place_of(tree.cells[i]->node, tree.cells[i]->block)->cell = tree.cells[i];
}

static struct cell *cell_new(uint32_t node, struct block *block, struct place *place)
{
    if (tree.n_cells + 1 >= tree.cells_capacity) {
        tree.cells_capacity = tree.cells_capacity ? 2 * tree.cells_capacity : 1 << 14;
        tree.cells = must(realloc(tree.cells, tree.cells_capacity * sizeof *tree.cells));
    }
    struct cell *c = arena_take(&tree.arena, sizeof *c);

    c->node = node;
    c->block = block;
    tree.cells[++tree.n_cells] = c;
    place->cell = c;
    if (2 * tree.n_cells > tree.by_place.n_slots)
        more_places();
    return c;
}

void cell_touch(struct cell *c)
{
    c->epoch = nodes_epoch;
    if (tree.n_touched == tree.touched_capacity) {
        tree.touched_capacity = tree.touched_capacity ? 2 * tree.touched_capacity : 4096;
        tree.touched = must(realloc(tree.touched, tree.touched_capacity * sizeof *tree.touched));
    }
    tree.touched[tree.n_touched++] = c;
}

/* When there are too many, what is executed as part of a node is put down to where its task began. */
static uint32_t root_of(uint32_t node)
{
    while (tree.nodes[node].way.parent)
        node = tree.nodes[node].way.parent;
    return node;
}

struct cell *cell_of(uint32_t node, struct block *block)
{
    struct place *place = place_of(node, block);

    if (!place->cell && block && tree.n_cells > CELLS_A_NODE * tree.limit) {
        node = root_of(node);
        place = place_of(node, block);
        tree.folded++;
    }
    struct cell *c = place->cell ? place->cell : cell_new(node, block, place);

    if (c->epoch != nodes_epoch)
        cell_touch(c);
    return c;
}

static struct extra *extra_in(struct cell *cell, uint32_t place)
{
    struct extra *e = cell->extras;

    while (e && e->place != place)
        e = e->next;
    if (!e) {
        e = arena_take(&tree.arena, sizeof *e);
        e->place = place;
        e->next = cell->extras;
        cell->extras = e;
    }
    return e;
}

struct extra *extra_of(struct cell *cell, uint32_t place)
{
    if (cell->epoch != nodes_epoch)
        cell_touch(cell);
    return extra_in(cell, place);
}

static void add(struct tally *sum, struct tally *waiting)
{
    sum->entered += waiting->entered;
    sum->lost += waiting->lost;
    sum->elements += waiting->elements;
    sum->mmio += waiting->mmio;
    *waiting = (struct tally){ 0 };
}

void nodes_cut(enum context context)
{
    for (size_t i = 0; i < tree.n_touched; i++) {
        struct cell *c = tree.touched[i];

        c->sum[context] += c->n;
        c->n = 0;
        for (struct extra *e = c->extras; e; e = e->next)
            add(&e->sum[context], &e->waiting);
    }
    tree.n_touched = 0;
    nodes_epoch++;
}

const struct cell *tree_entered(uint32_t node)
{
    return place_of(node, NULL)->cell;
}

/* Nodes from this one up to the nearest that has a value already, which are then on the stack; parents may be younger. */
static uint32_t climb(uint32_t node, const uint32_t *values, const struct node *nodes, struct bytes *stack)
{
    for (; node && !values[node]; node = nodes[node].way.parent)
        bytes_u32(stack, node);
    return node;
}

static uint32_t popped(struct bytes *stack)
{
    uint32_t node;

    stack->size -= sizeof node;
    memcpy(&node, stack->data + stack->size, sizeof node);
    return node;
}

uint32_t *tree_programs(void)
{
    uint32_t *found = zalloc(tree.n_nodes, sizeof *found);
    struct bytes stack = { 0 };

    for (uint32_t i = 1; i < tree.n_nodes; i++) {
        uint32_t above = climb(i, found, tree.nodes, &stack);

        while (stack.size) {
            uint32_t node = popped(&stack);

            found[node] = above ? found[above] : tree.nodes[node].way.task;
            above = node;
        }
    }
    free(stack.data);
    return found;
}

/* The number that each node has now, by the one that it had. */
static uint32_t *nodes_again(const struct tree *old, const uint32_t *to)
{
    uint32_t *number = zalloc(old->n_nodes, sizeof *number);
    struct bytes stack = { 0 };

    for (uint32_t i = 1; i < old->n_nodes; i++) {
        uint32_t above = climb(i, number, old->nodes, &stack);

        while (stack.size) {
            uint32_t node = popped(&stack);
            struct way way = old->nodes[node].way;

            way.parent = number[above];
            way.task = way.parent ? 0 : to[way.task];
            size_t slot = slot_of_way(&way);

            number[node] = tree.by_way.slots[slot] ? tree.by_way.slots[slot] : node_new(&way, slot);
            above = node;
        }
    }
    free(stack.data);
    return number;
}

static struct cell *cell_again(const struct cell *c, uint32_t node)
{
    struct place *place = place_of(node, c->block);
    struct cell *now = place->cell ? place->cell : cell_new(node, c->block, place);

    for (int context = 0; context < CONTEXTS; context++)
        now->sum[context] += c->sum[context];
    for (struct extra *e = c->extras; e; e = e->next) {
        struct extra *sums = extra_in(now, e->place);

        for (int context = 0; context < CONTEXTS; context++)
            add(&sums->sum[context], &e->sum[context]);
    }
    return now;
}

void tree_renumber(const uint32_t *to, struct cell **kept)
{
    struct tree old = tree;
    struct cell *found = NULL;

    tree.by_way.slots = NULL;
    tree.by_place.slots = NULL;
    empty();
    uint32_t *number = nodes_again(&old, to);

    for (uint32_t i = 1; i <= old.n_cells; i++) {
        struct cell *now = cell_again(old.cells[i], number[old.cells[i]->node]);

        if (old.cells[i] == *kept)
            found = now;
    }
    *kept = found;
    free(number);
    arena_free(&old.arena);
    free(old.nodes);
    free(old.cells);
    free(old.by_way.slots);
    free(old.by_place.slots);
}
