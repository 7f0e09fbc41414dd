/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's own cipher from user space: a socket of the family AF_ALG, two system calls a piece. */
#include "bench.h"

#include <linux/if_alg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SOL_ALG
#define SOL_ALG 279 /* include/linux/socket.h */
#endif

/* As the module does: the one without special hardware, else what the kernel takes for the name. */
static const char *const ciphers[] = {"cbc(aes-generic)", "cbc(aes)", NULL};

static int socket_fd = -1, request_fd = -1;

/* What goes with each piece: the direction and the IV. */
static _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint32_t)) +
                                             CMSG_SPACE(sizeof(struct af_alg_iv) + AES256_BLOCK_BYTES)];

static void control_fill(uint32_t direction)
{
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    struct af_alg_iv *iv;

    memset(control, 0, sizeof control);
    part->cmsg_level = SOL_ALG;
    part->cmsg_type = ALG_SET_OP;
    part->cmsg_len = CMSG_LEN(sizeof direction);
    memcpy(CMSG_DATA(part), &direction, sizeof direction);
    part = CMSG_NXTHDR(&message, part);
    part->cmsg_level = SOL_ALG;
    part->cmsg_type = ALG_SET_IV;
    part->cmsg_len = CMSG_LEN(sizeof *iv + AES256_BLOCK_BYTES);
    iv = (struct af_alg_iv *)CMSG_DATA(part);
    iv->ivlen = AES256_BLOCK_BYTES;
    memcpy(iv->iv, vector_iv, AES256_BLOCK_BYTES);
}

static bool bound(void)
{
    for (const char *const *cipher = ciphers; *cipher; cipher++) {
        struct sockaddr_alg address = {.salg_family = AF_ALG, .salg_type = "skcipher"};

        memcpy(address.salg_name, *cipher, strlen(*cipher));
        if (!bind(socket_fd, (struct sockaddr *)&address, sizeof address))
            return true;
    }
    return false;
}

static bool setup(const char *name)
{
    memset(pieces.result, 0, PIECES_BYTES);
    socket_fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (socket_fd < 0)
        return left_out(name, "this kernel has no AF_ALG sockets (CONFIG_CRYPTO_USER_API_SKCIPHER)");
    if (!bound()) {
        close(socket_fd);
        return left_out(name, "this kernel has no cbc(aes) for AF_ALG (CONFIG_CRYPTO_USER_API_SKCIPHER, CRYPTO_CBC)");
    }
    if (setsockopt(socket_fd, SOL_ALG, ALG_SET_KEY, vector_key, sizeof vector_key))
        fail("setting the key");
    request_fd = accept(socket_fd, NULL, NULL);
    if (request_fd < 0)
        fail("accept");
    return true;
}

static void piece(const uint8_t *from, uint8_t *to)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)from, .iov_len = PIECE_BYTES};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};

    if (sendmsg(request_fd, &message, 0) != PIECE_BYTES || read(request_fd, to, PIECE_BYTES) != PIECE_BYTES)
        fail("a piece through the socket");
}

static void encrypt(const char *name)
{
    uint64_t ticks;

    control_fill(ALG_OP_ENCRYPT);
    MEASURE(&ticks, name, loop_counts[0], loop_counts[1], piece(pieces.plain + at, pieces.result + at));
    note_clock(name, ticks, kdelta_clock_overhead());
    check_result(pieces.sealed);
}

static void decrypt(const char *name)
{
    uint64_t ticks;

    control_fill(ALG_OP_DECRYPT);
    MEASURE(&ticks, name, loop_counts[0], loop_counts[1], piece(pieces.sealed + at, pieces.result + at));
    note_clock(name, ticks, kdelta_clock_overhead());
    check_result(pieces.plain);
}

static void teardown(void)
{
    close(request_fd);
    close(socket_fd);
}

const struct operation socket_operations[] = {
    {"af_alg-encrypt", setup, encrypt, teardown},
    {"af_alg-decrypt", setup, decrypt, teardown},
    {0},
};
