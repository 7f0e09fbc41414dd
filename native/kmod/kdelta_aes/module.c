/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /dev/kdelta-aes: runs the workload's loops in the kernel, on the time of the task that asks.
 *
 * Written: "REGION WARM-UP ITERATIONS", or "has-crypto 0 0". Read afterwards: "TICKS OVERHEAD CIPHER".
 */
#include <crypto/skcipher.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "pieces.h"

#define OWN_CIPHER "own"
#define WRONG_RESULT (-EBADMSG)

static DEFINE_MUTEX(busy);
static struct pieces *pieces;
static char answer[192];

struct request {
    char region[64];
    unsigned long n[2]; /* warm-up, iterations */
    uint64_t ticks;
    char cipher[64];
};

static int own_encrypt(struct request *r)
{
    measure_encrypt(pieces, r->region, r->n, &r->ticks);
    return bytes_differ(pieces->result, pieces->sealed, PIECES_BYTES) ? WRONG_RESULT : 0;
}

static int own_decrypt(struct request *r)
{
    measure_decrypt(pieces, r->region, r->n, &r->ticks);
    return bytes_differ(pieces->result, pieces->plain, PIECES_BYTES) ? WRONG_RESULT : 0;
}

#if IS_REACHABLE(CONFIG_CRYPTO_SKCIPHER)

/* Allocated, since a cipher's buffers must have pages of their own kind. */
static struct crypto {
    struct crypto_skcipher *tfm;
    struct skcipher_request *request;
    struct scatterlist from, to;
    uint8_t iv[AES256_BLOCK_BYTES];
    int wrong; /* why there is no cipher */
} *crypto;

/* The kernel's own cipher, as a user of it without special hardware gets it, and so that it is done when the call returns. */
static int cipher_find(struct crypto *c)
{
    c->tfm = crypto_alloc_skcipher("cbc(aes-generic)", 0, CRYPTO_ALG_ASYNC);
    if (IS_ERR(c->tfm))
        c->tfm = crypto_alloc_skcipher("cbc(aes)", 0, CRYPTO_ALG_ASYNC);
    if (IS_ERR(c->tfm))
        return PTR_ERR(c->tfm);
    c->request = skcipher_request_alloc(c->tfm, GFP_KERNEL);
    if (!c->request) {
        crypto_free_skcipher(c->tfm);
        return -ENOMEM;
    }
    skcipher_request_set_callback(c->request, 0, NULL, NULL);
    return crypto_skcipher_setkey(c->tfm, vector_key, sizeof vector_key);
}

/* Long before anything is measured: the kernel tests a cipher that is new to it, in a thread. */
static int cipher_start(void)
{
    crypto = kzalloc(sizeof *crypto, GFP_KERNEL);
    if (!crypto)
        return -ENOMEM;
    crypto->wrong = cipher_find(crypto);
    return 0;
}

static void cipher_end(void)
{
    if (crypto->request) {
        skcipher_request_free(crypto->request);
        crypto_free_skcipher(crypto->tfm);
    }
    kfree(crypto);
}

static void piece_is(const uint8_t *from, uint8_t *to)
{
    memcpy(crypto->iv, vector_iv, sizeof crypto->iv);
    sg_init_one(&crypto->from, from, PIECE_BYTES);
    sg_init_one(&crypto->to, to, PIECE_BYTES);
    skcipher_request_set_crypt(crypto->request, &crypto->from, &crypto->to, PIECE_BYTES, crypto->iv);
}

static int piece_encrypt(size_t at)
{
    piece_is(pieces->plain + at, pieces->result + at);
    return crypto_skcipher_encrypt(crypto->request);
}

static int piece_decrypt(size_t at)
{
    piece_is(pieces->sealed + at, pieces->result + at);
    return crypto_skcipher_decrypt(crypto->request);
}

static int with_crypto(struct request *r, bool decrypts)
{
    const uint8_t *wanted = decrypts ? pieces->plain : pieces->sealed;
    int failed = 0;

    if (crypto->wrong)
        return crypto->wrong;
    strscpy(r->cipher, crypto_tfm_alg_driver_name(crypto_skcipher_tfm(crypto->tfm)), sizeof r->cipher);
    if (decrypts)
        MEASURE(&r->ticks, r->region, r->n[0], r->n[1], failed |= piece_decrypt(at));
    else
        MEASURE(&r->ticks, r->region, r->n[0], r->n[1], failed |= piece_encrypt(at));
    return failed || bytes_differ(pieces->result, wanted, PIECES_BYTES) ? WRONG_RESULT : 0;
}

static int has_crypto(struct request *r)
{
    return crypto->wrong;
}

#else

static int cipher_start(void)
{
    return 0;
}

static void cipher_end(void)
{
}

static int with_crypto(struct request *r, bool decrypts)
{
    return -EOPNOTSUPP;
}

static int has_crypto(struct request *r)
{
    return -EOPNOTSUPP;
}

#endif

static int crypto_encrypt(struct request *r)
{
    return with_crypto(r, false);
}

static int crypto_decrypt(struct request *r)
{
    return with_crypto(r, true);
}

static const struct {
    const char *region;
    int (*measure)(struct request *r);
} operations[] = {
    {"kernel-encrypt", own_encrypt},
    {"kernel-decrypt", own_decrypt},
    {"kernel-crypto-encrypt", crypto_encrypt},
    {"kernel-crypto-decrypt", crypto_decrypt},
    {"has-crypto", has_crypto},
};

static int measure(struct request *r)
{
    size_t i;

    strscpy(r->cipher, OWN_CIPHER, sizeof r->cipher);
    memset(pieces->result, 0, PIECES_BYTES);
    for (i = 0; i < ARRAY_SIZE(operations); i++)
        if (!strcmp(r->region, operations[i].region))
            return operations[i].measure(r);
    return -ENOENT;
}

static ssize_t aes_write(struct file *file, const char __user *text, size_t size, loff_t *at)
{
    struct request *r = kzalloc(sizeof *r, GFP_KERNEL);
    char *line = memdup_user_nul(text, min_t(size_t, size, 128));
    ssize_t wrong = -ENOMEM;

    if (r && !IS_ERR(line)) {
        mutex_lock(&busy);
        wrong = sscanf(line, "%63s %lu %lu", r->region, &r->n[0], &r->n[1]) == 3 ? measure(r) : -EINVAL;
        if (!wrong)
            snprintf(answer, sizeof answer, "%llu %llu %s\n", (unsigned long long)r->ticks,
                     (unsigned long long)kdelta_clock_overhead(), r->cipher);
        mutex_unlock(&busy);
    }
    if (!IS_ERR(line))
        kfree(line);
    kfree(r);
    return wrong ? wrong : (ssize_t)size;
}

static ssize_t aes_read(struct file *file, char __user *text, size_t size, loff_t *at)
{
    return simple_read_from_buffer(text, size, at, answer, strlen(answer));
}

static const struct file_operations aes_file = {
    .owner = THIS_MODULE,
    .write = aes_write,
    .read = aes_read,
    .llseek = default_llseek,
};

static struct miscdevice aes_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "kdelta-aes",
    .fops = &aes_file,
    .mode = 0600,
};

static int __init aes_init(void)
{
    int wrong = -ENOMEM;

    pieces = kzalloc(sizeof *pieces, GFP_KERNEL);
    if (pieces)
        wrong = pieces_start(pieces) ? WRONG_RESULT : cipher_start();
    if (!wrong) {
        wrong = misc_register(&aes_device);
        if (wrong)
            cipher_end();
    }
    if (wrong)
        kfree(pieces);
    return wrong;
}

static void __exit aes_exit(void)
{
    misc_deregister(&aes_device);
    cipher_end();
    kfree(pieces);
}

module_init(aes_init);
module_exit(aes_exit);
MODULE_DESCRIPTION("kdelta's workload aes, in the kernel");
MODULE_LICENSE("GPL");
