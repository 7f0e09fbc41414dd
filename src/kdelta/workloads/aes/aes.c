/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AES-256 in CBC mode, from FIPS-197 and SP 800-38A, without a library: it is to be compiled for the kernel as well.
 *
 * A round is four look-ups and exclusive ors a column, in tables of what substitution, row shift and column mix make of a byte.
 * Decryption goes the way of the equivalent inverse cipher (FIPS-197, 5.3.5), which has the same shape. A word is a column, its
 * first byte on top.
 */
#include "aes.h"

#define BYTE(word, place) ((word) >> (24 - 8 * (place)) & 0xff)
#define KEY_WORDS (AES256_KEY_BYTES / 4)
#define ALL_WORDS (AES256_WORDS * (AES256_ROUNDS + 1))

static uint8_t substitute[256], restore[256];
static uint32_t forth[4][256], back[4][256];

static uint8_t twice(uint8_t a)
{
    return (uint8_t)(a << 1 ^ (a & 0x80 ? 0x1b : 0));
}

/* The product in GF(2^8). */
static uint8_t times(uint8_t a, uint8_t b)
{
    uint8_t sum = 0;

    for (; b; b >>= 1, a = twice(a))
        if (b & 1)
            sum ^= a;
    return sum;
}

static uint32_t word_of(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    return (uint32_t)a << 24 | (uint32_t)b << 16 | (uint32_t)c << 8 | d;
}

/* The inverse is the 254th power, since the 255th is one; that of zero is zero. */
static uint8_t inverse(uint8_t a)
{
    uint8_t power = 1;
    int i;

    for (i = 0; i < 254; i++)
        power = times(power, a);
    return power;
}

static void fill_row(unsigned int x)
{
    uint8_t s = substitute[x], r = restore[x];
    uint32_t f = word_of(twice(s), s, s, times(s, 3));
    uint32_t b = word_of(times(r, 14), times(r, 9), times(r, 13), times(r, 11));
    int place;

    for (place = 0; place < 4; place++) {
        forth[place][x] = f;
        back[place][x] = b;
        f = f >> 8 | f << 24;
        b = b >> 8 | b << 24;
    }
}

void aes256_start(void)
{
    unsigned int x;

    for (x = 0; x < 256; x++) {
        uint8_t i = inverse((uint8_t)x);
        unsigned int twofold = i | (unsigned int)i << 8;

        substitute[x] = (uint8_t)(i ^ twofold >> 7 ^ twofold >> 6 ^ twofold >> 5 ^ twofold >> 4 ^ 0x63);
        restore[substitute[x]] = (uint8_t)x;
    }
    for (x = 0; x < 256; x++)
        fill_row(x);
}

static uint32_t word_at(const uint8_t *bytes)
{
    return word_of(bytes[0], bytes[1], bytes[2], bytes[3]);
}

static void word_put(uint8_t *bytes, uint32_t word)
{
    bytes[0] = (uint8_t)BYTE(word, 0);
    bytes[1] = (uint8_t)BYTE(word, 1);
    bytes[2] = (uint8_t)BYTE(word, 2);
    bytes[3] = (uint8_t)BYTE(word, 3);
}

static uint32_t substituted(uint32_t word)
{
    return word_of(substitute[BYTE(word, 0)], substitute[BYTE(word, 1)], substitute[BYTE(word, 2)],
                   substitute[BYTE(word, 3)]);
}

/* What the column mix of decryption makes of a word. */
static uint32_t unmixed(uint32_t word)
{
    return back[0][substitute[BYTE(word, 0)]] ^ back[1][substitute[BYTE(word, 1)]] ^
           back[2][substitute[BYTE(word, 2)]] ^ back[3][substitute[BYTE(word, 3)]];
}

void aes256_expand(struct aes256 *key, const uint8_t *bytes)
{
    uint32_t *word = key->encrypt;
    uint8_t constant = 1;
    int i;

    for (i = 0; i < KEY_WORDS; i++)
        word[i] = word_at(bytes + 4 * i);
    for (; i < ALL_WORDS; i++) {
        uint32_t last = word[i - 1];

        if (i % KEY_WORDS == 0) {
            last = substituted(last << 8 | last >> 24) ^ (uint32_t)constant << 24;
            constant = twice(constant);
        } else if (i % KEY_WORDS == 4) {
            last = substituted(last);
        }
        word[i] = word[i - KEY_WORDS] ^ last;
    }
    for (i = 0; i < ALL_WORDS; i++) {
        int round = AES256_ROUNDS - i / AES256_WORDS;
        uint32_t same = word[AES256_WORDS * round + i % AES256_WORDS];

        key->decrypt[i] = round == 0 || round == AES256_ROUNDS ? same : unmixed(same);
    }
}

static void encrypt(const uint32_t *k, uint32_t *s)
{
    uint32_t a = s[0] ^ k[0], b = s[1] ^ k[1], c = s[2] ^ k[2], d = s[3] ^ k[3];
    int round;

    for (round = 1; round < AES256_ROUNDS; round++) {
        uint32_t e, f, g, h;

        k += AES256_WORDS;
        e = forth[0][BYTE(a, 0)] ^ forth[1][BYTE(b, 1)] ^ forth[2][BYTE(c, 2)] ^ forth[3][BYTE(d, 3)] ^ k[0];
        f = forth[0][BYTE(b, 0)] ^ forth[1][BYTE(c, 1)] ^ forth[2][BYTE(d, 2)] ^ forth[3][BYTE(a, 3)] ^ k[1];
        g = forth[0][BYTE(c, 0)] ^ forth[1][BYTE(d, 1)] ^ forth[2][BYTE(a, 2)] ^ forth[3][BYTE(b, 3)] ^ k[2];
        h = forth[0][BYTE(d, 0)] ^ forth[1][BYTE(a, 1)] ^ forth[2][BYTE(b, 2)] ^ forth[3][BYTE(c, 3)] ^ k[3];
        a = e, b = f, c = g, d = h;
    }
    k += AES256_WORDS;
    s[0] = word_of(substitute[BYTE(a, 0)], substitute[BYTE(b, 1)], substitute[BYTE(c, 2)], substitute[BYTE(d, 3)]) ^ k[0];
    s[1] = word_of(substitute[BYTE(b, 0)], substitute[BYTE(c, 1)], substitute[BYTE(d, 2)], substitute[BYTE(a, 3)]) ^ k[1];
    s[2] = word_of(substitute[BYTE(c, 0)], substitute[BYTE(d, 1)], substitute[BYTE(a, 2)], substitute[BYTE(b, 3)]) ^ k[2];
    s[3] = word_of(substitute[BYTE(d, 0)], substitute[BYTE(a, 1)], substitute[BYTE(b, 2)], substitute[BYTE(c, 3)]) ^ k[3];
}

static void decrypt(const uint32_t *k, uint32_t *s)
{
    uint32_t a = s[0] ^ k[0], b = s[1] ^ k[1], c = s[2] ^ k[2], d = s[3] ^ k[3];
    int round;

    for (round = 1; round < AES256_ROUNDS; round++) {
        uint32_t e, f, g, h;

        k += AES256_WORDS;
        e = back[0][BYTE(a, 0)] ^ back[1][BYTE(d, 1)] ^ back[2][BYTE(c, 2)] ^ back[3][BYTE(b, 3)] ^ k[0];
        f = back[0][BYTE(b, 0)] ^ back[1][BYTE(a, 1)] ^ back[2][BYTE(d, 2)] ^ back[3][BYTE(c, 3)] ^ k[1];
        g = back[0][BYTE(c, 0)] ^ back[1][BYTE(b, 1)] ^ back[2][BYTE(a, 2)] ^ back[3][BYTE(d, 3)] ^ k[2];
        h = back[0][BYTE(d, 0)] ^ back[1][BYTE(c, 1)] ^ back[2][BYTE(b, 2)] ^ back[3][BYTE(a, 3)] ^ k[3];
        a = e, b = f, c = g, d = h;
    }
    k += AES256_WORDS;
    s[0] = word_of(restore[BYTE(a, 0)], restore[BYTE(d, 1)], restore[BYTE(c, 2)], restore[BYTE(b, 3)]) ^ k[0];
    s[1] = word_of(restore[BYTE(b, 0)], restore[BYTE(a, 1)], restore[BYTE(d, 2)], restore[BYTE(c, 3)]) ^ k[1];
    s[2] = word_of(restore[BYTE(c, 0)], restore[BYTE(b, 1)], restore[BYTE(a, 2)], restore[BYTE(d, 3)]) ^ k[2];
    s[3] = word_of(restore[BYTE(d, 0)], restore[BYTE(c, 1)], restore[BYTE(b, 2)], restore[BYTE(a, 3)]) ^ k[3];
}

void aes256_cbc_encrypt(const struct aes256 *key, const uint8_t *iv, const uint8_t *from, uint8_t *to, size_t size)
{
    uint32_t state[AES256_WORDS];
    int i;

    for (i = 0; i < AES256_WORDS; i++)
        state[i] = word_at(iv + 4 * i);
    for (; size; size -= AES256_BLOCK_BYTES, from += AES256_BLOCK_BYTES, to += AES256_BLOCK_BYTES) {
        for (i = 0; i < AES256_WORDS; i++)
            state[i] ^= word_at(from + 4 * i);
        encrypt(key->encrypt, state);
        for (i = 0; i < AES256_WORDS; i++)
            word_put(to + 4 * i, state[i]);
    }
}

void aes256_cbc_decrypt(const struct aes256 *key, const uint8_t *iv, const uint8_t *from, uint8_t *to, size_t size)
{
    uint32_t state[AES256_WORDS], before[AES256_WORDS], sealed[AES256_WORDS];
    int i;

    for (i = 0; i < AES256_WORDS; i++)
        before[i] = word_at(iv + 4 * i);
    for (; size; size -= AES256_BLOCK_BYTES, from += AES256_BLOCK_BYTES, to += AES256_BLOCK_BYTES) {
        for (i = 0; i < AES256_WORDS; i++)
            state[i] = sealed[i] = word_at(from + 4 * i);
        decrypt(key->decrypt, state);
        for (i = 0; i < AES256_WORDS; i++) {
            word_put(to + 4 * i, state[i] ^ before[i]);
            before[i] = sealed[i];
        }
    }
}
