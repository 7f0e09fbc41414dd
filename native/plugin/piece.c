/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Distinct pieces by content, and the sequence of them. Memory is bounded by limits on both. */
#include "piece.h"

#define LEAST_SLOTS (1u << 12)
#define KEPT_SLOTS (1u << 16) /* a larger table is not kept for the next region */

struct piece trace_piece;
struct pieces pieces;

static void *grown(void *data, size_t *capacity, size_t needed, size_t each)
{
    if (needed <= *capacity)
        return data;
    while (*capacity < needed)
        *capacity = *capacity ? 2 * *capacity : 4096;
    return must(realloc(data, *capacity * each));
}

static void numbers_add(struct numbers *n, const uint32_t *data, size_t size)
{
    n->data = grown(n->data, &n->capacity, n->size + size, sizeof *data);
    memcpy(n->data + n->size, data, size * sizeof *data);
    n->size += size;
}

static void new_slots(size_t n)
{
    free(pieces.slots);
    pieces.n_slots = n;
    pieces.slots = must(malloc(n * sizeof *pieces.slots));
    memset(pieces.slots, 0xff, n * sizeof *pieces.slots);
}

void pieces_forget(void)
{
    pieces.items.size = pieces.sequence.size = pieces.n_kept = 0;
    if (!pieces.slots || pieces.n_slots > KEPT_SLOTS)
        new_slots(LEAST_SLOTS);
    else
        memset(pieces.slots, 0xff, pieces.n_slots * sizeof *pieces.slots);
    trace_piece.length = 0;
    trace_piece.hash = 0;
    trace_piece.waiting = NULL;
    trace_piece.before = 0;
    pieces.last = NONE;
}

static uint64_t hash_of(const uint32_t *items, uint32_t length)
{
    uint64_t h = length;

    for (uint32_t i = 0; i < length; i++)
        h = mixed(h ^ items[i]);
    return h;
}

static bool is_same(const struct kept *k, const uint32_t *items, uint32_t length)
{
    return k->length == length && !memcmp(pieces.items.data + k->start, items, length * sizeof *items);
}

static size_t slot_of(uint64_t hash, const uint32_t *items, uint32_t length)
{
    size_t mask = pieces.n_slots - 1, i = hash & mask;

    for (;; i = (i + 1) & mask) {
        uint32_t piece = pieces.slots[i];

        if (piece == NONE || (pieces.kept[piece].hash == hash && is_same(&pieces.kept[piece], items, length)))
            return i;
    }
}

static void more_slots(void)
{
    new_slots(2 * pieces.n_slots);
    for (size_t piece = 0; piece < pieces.n_kept; piece++) {
        size_t mask = pieces.n_slots - 1, i = pieces.kept[piece].hash & mask;

        while (pieces.slots[i] != NONE)
            i = (i + 1) & mask;
        pieces.slots[i] = (uint32_t)piece;
    }
}

void pieces_stop(void)
{
    pieces.truncated = true;
    trace_piece.recording = false;
    trace_piece.length = 0;
    trace_piece.waiting = NULL;
    trace_piece.before = 0;
}

/* The number of the piece of that content; NONE when there is no room for one more. */
static uint32_t piece_of(const uint32_t *items, uint32_t length)
{
    uint64_t hash = hash_of(items, length);
    size_t slot = slot_of(hash, items, length);

    if (pieces.slots[slot] != NONE)
        return pieces.slots[slot];
    if (pieces.items.size + length > pieces.limit)
        return NONE;
    uint32_t piece = (uint32_t)pieces.n_kept++;

    pieces.kept = grown(pieces.kept, &pieces.kept_capacity, pieces.n_kept, sizeof *pieces.kept);
    pieces.kept[piece] = (struct kept){ pieces.items.size, hash, length, NONE };
    numbers_add(&pieces.items, items, length);
    pieces.slots[slot] = piece;
    if (2 * pieces.n_kept > pieces.n_slots)
        more_slots();
    return piece;
}

/* Keeps the first items of the piece that is open, and leaves the others in it. */
static void keep(uint32_t length)
{
    struct piece *p = &trace_piece;

    if (pieces.truncated) { /* nothing may follow the gap */
        p->length = 0;
        return;
    }
    uint32_t guess = pieces.last == NONE ? NONE : pieces.kept[pieces.last].next;
    uint32_t piece = guess != NONE && is_same(&pieces.kept[guess], p->items, length)
        ? guess : piece_of(p->items, length);

    if (piece == NONE || pieces.sequence.size == pieces.limit) {
        pieces_stop();
        return;
    }
    if (pieces.last != NONE)
        pieces.kept[pieces.last].next = piece;
    pieces.last = piece;
    numbers_add(&pieces.sequence, &piece, 1);
    p->length -= length;
    memmove(p->items, p->items + length, p->length * sizeof *p->items);
    memmove(p->hashes, p->hashes + length, p->length * sizeof *p->hashes);
}

/* After which item of a full piece the hash was least; the last such place. */
static uint32_t least_hash(void)
{
    uint32_t least = PIECE_LEAST - 1;

    for (uint32_t i = least; i < PIECE_MOST; i++)
        if (trace_piece.hashes[i] <= trace_piece.hashes[least])
            least = i;
    return least + 1;
}

void piece_full(void)
{
    keep(trace_piece.length < PIECE_MOST ? trace_piece.length : least_hash());
}

void piece_end(void)
{
    if (trace_piece.length)
        keep(trace_piece.length);
}
