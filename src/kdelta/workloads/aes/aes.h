/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AES-256 in CBC mode: the same source for user programs and for kernel modules. */
#ifndef AES_H
#define AES_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#define AES256_KEY_BYTES 32
#define AES256_BLOCK_BYTES 16
#define AES256_ROUNDS 14
#define AES256_WORDS 4 /* of a block */

/* One key, expanded for either direction. */
struct aes256 {
    uint32_t encrypt[AES256_WORDS * (AES256_ROUNDS + 1)];
    uint32_t decrypt[AES256_WORDS * (AES256_ROUNDS + 1)];
};

/* Makes the tables that all else needs; once. */
void aes256_start(void);

void aes256_expand(struct aes256 *key, const uint8_t *bytes);

/* `size` is a multiple of the block's; `from` and `to` may be the same. */
void aes256_cbc_encrypt(const struct aes256 *key, const uint8_t *iv, const uint8_t *from, uint8_t *to, size_t size);
void aes256_cbc_decrypt(const struct aes256 *key, const uint8_t *iv, const uint8_t *from, uint8_t *to, size_t size);

#endif
