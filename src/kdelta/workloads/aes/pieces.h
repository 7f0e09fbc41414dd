/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is encrypted and how it is measured: the same text in the user program and in the kernel module. */
#ifndef PIECES_H
#define PIECES_H

#include "aes.h"
#include "kdelta_clock.h"

#define PIECE_BYTES 512
#define PIECES 16 /* taken in turn */
#define PIECES_BYTES (PIECE_BYTES * PIECES)

/* SP 800-38A, F.2.5 and F.2.6: CBC-AES256. Key and IV serve for all pieces. */
#define VECTOR_BYTES 64

static const uint8_t vector_key[AES256_KEY_BYTES] = {
    0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae, 0xf0, 0x85, 0x7d, 0x77, 0x81,
    0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61, 0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3, 0x09, 0x14, 0xdf, 0xf4,
};
static const uint8_t vector_iv[AES256_BLOCK_BYTES] = {
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
};
static const uint8_t vector_plain[VECTOR_BYTES] = {
    0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a,
    0xae, 0x2d, 0x8a, 0x57, 0x1e, 0x03, 0xac, 0x9c, 0x9e, 0xb7, 0x6f, 0xac, 0x45, 0xaf, 0x8e, 0x51,
    0x30, 0xc8, 0x1c, 0x46, 0xa3, 0x5c, 0xe4, 0x11, 0xe5, 0xfb, 0xc1, 0x19, 0x1a, 0x0a, 0x52, 0xef,
    0xf6, 0x9f, 0x24, 0x45, 0xdf, 0x4f, 0x9b, 0x17, 0xad, 0x2b, 0x41, 0x7b, 0xe6, 0x6c, 0x37, 0x10,
};
static const uint8_t vector_sealed[VECTOR_BYTES] = {
    0xf5, 0x8c, 0x4c, 0x04, 0xd6, 0xe5, 0xf1, 0xba, 0x77, 0x9e, 0xab, 0xfb, 0x5f, 0x7b, 0xfb, 0xd6,
    0x9c, 0xfc, 0x4e, 0x96, 0x7e, 0xdb, 0x80, 0x8d, 0x67, 0x9f, 0x77, 0x7b, 0xc6, 0x70, 0x2c, 0x7d,
    0x39, 0xf2, 0x33, 0x69, 0xa9, 0xd9, 0xba, 0xcf, 0xa5, 0x30, 0xe2, 0x63, 0x04, 0x23, 0x14, 0x61,
    0xb2, 0xeb, 0x05, 0xe2, 0xc3, 0x9b, 0xe9, 0xfc, 0xda, 0x6c, 0x19, 0x07, 0x8c, 0x6a, 0x9d, 0x1b,
};

static inline int bytes_differ(const uint8_t *a, const uint8_t *b, size_t size)
{
    for (; size; size--)
        if (*a++ != *b++)
            return 1;
    return 0;
}

static inline void pieces_fill(uint8_t *plain)
{
    uint32_t state = 1;
    size_t i;

    for (i = 0; i < PIECES_BYTES; i++) {
        state = state * 1664525 + 1013904223; /* any bytes that do not repeat will do */
        plain[i] = (uint8_t)(state >> 24);
    }
}

/* The state that either side keeps: the pieces, what they encrypt to, and where results go. */
struct pieces {
    struct aes256 key;
    uint8_t plain[PIECES_BYTES], sealed[PIECES_BYTES], result[PIECES_BYTES];
};

/* Fills the pieces and checks the cipher: by the published vector, and by the way there and back. 0 when it is right. */
static inline int pieces_start(struct pieces *p)
{
    size_t at;

    aes256_start();
    aes256_expand(&p->key, vector_key);
    aes256_cbc_encrypt(&p->key, vector_iv, vector_plain, p->result, VECTOR_BYTES);
    if (bytes_differ(p->result, vector_sealed, VECTOR_BYTES))
        return -1;
    aes256_cbc_decrypt(&p->key, vector_iv, vector_sealed, p->result, VECTOR_BYTES);
    if (bytes_differ(p->result, vector_plain, VECTOR_BYTES))
        return -1;
    pieces_fill(p->plain);
    for (at = 0; at < PIECES_BYTES; at += PIECE_BYTES) {
        aes256_cbc_encrypt(&p->key, vector_iv, p->plain + at, p->sealed + at, PIECE_BYTES);
        aes256_cbc_decrypt(&p->key, vector_iv, p->sealed + at, p->result + at, PIECE_BYTES);
    }
    return bytes_differ(p->result, p->plain, PIECES_BYTES) ? -1 : 0;
}

/* A clock needs more iterations than a count that is exact. */
#ifdef KDELTA_TIMED
#define GOES_ON(left) kdelta_wants_more()
#else
#define GOES_ON(left) (left)
#endif

/* Measures an iteration a piece. `step` is a statement that uses `at`, the piece's offset. */
#define MEASURE(ticks, name, warm_up, iterations, step)                            \
    do {                                                                           \
        size_t at = 0;                                                             \
        unsigned long left;                                                        \
        uint64_t begin;                                                            \
                                                                                   \
        for (left = (warm_up); left; left--, at = (at + PIECE_BYTES) % PIECES_BYTES) \
            step;                                                                  \
        kdelta_announce(name);                                                     \
        begin = kdelta_clock_begin();                                              \
        for (left = (iterations); GOES_ON(left); left--) {                         \
            step;                                                                  \
            at = (at + PIECE_BYTES) % PIECES_BYTES;                                \
            kdelta_iter();                                                         \
        }                                                                          \
        *(ticks) = kdelta_clock_end() - begin;                                     \
    } while (0)

static inline void measure_encrypt(struct pieces *p, const char *name, unsigned long n[2], uint64_t *ticks)
{
    MEASURE(ticks, name, n[0], n[1],
            aes256_cbc_encrypt(&p->key, vector_iv, p->plain + at, p->result + at, PIECE_BYTES));
}

static inline void measure_decrypt(struct pieces *p, const char *name, unsigned long n[2], uint64_t *ticks)
{
    MEASURE(ticks, name, n[0], n[1],
            aes256_cbc_decrypt(&p->key, vector_iv, p->sealed + at, p->result + at, PIECE_BYTES));
}

#endif
