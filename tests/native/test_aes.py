# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload `aes` on the host: its cipher against published vectors, and what it does not do."""

import hashlib
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kdelta.host.native import STATIC_FLAGS
from kdelta.workloads.catalog import find_workload

from .conftest import SANITIZERS, compile_c
from .disassembly import instructions, marks

AES = find_workload("aes")
OPERATIONS = [operation.name for operation in AES.operations]
USER = ["user-encrypt", "user-decrypt"]

CALLER = r"""
#include <stdio.h>
#include <string.h>
#include "aes.h"

/* cipher encrypt|decrypt KEY IV DATA, all in hexadecimal digits */
static size_t from_hex(const char *digits, uint8_t *bytes)
{
    size_t n = 0;
    unsigned int byte;

    for (; sscanf(digits + 2 * n, "%2x", &byte) == 1; n++)
        bytes[n] = (uint8_t)byte;
    return n;
}

int main(int argc, char **argv)
{
    static uint8_t key[32], iv[16], data[4096];
    static struct aes256 expanded;
    size_t size;

    if (argc != 5 || from_hex(argv[2], key) != 32 || from_hex(argv[3], iv) != 16)
        return 2;
    size = from_hex(argv[4], data);
    aes256_start();
    aes256_expand(&expanded, key);
    (*argv[1] == 'e' ? aes256_cbc_encrypt : aes256_cbc_decrypt)(&expanded, iv, data, data, size);
    for (size_t i = 0; i < size; i++)
        printf("%02x", data[i]);
    return 0;
}
"""

# SP 800-38A, F.2.5 and F.2.6.
KEY = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
IV = "000102030405060708090a0b0c0d0e0f"
PLAIN = (
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
SEALED = (
    "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d"
    "39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b"
)
# FIPS-197, C.3: one block, which CBC with an IV of zeros encrypts alike.
BLOCK_KEY = bytes(range(32)).hex()
BLOCK_PLAIN, BLOCK_SEALED = (
    "00112233445566778899aabbccddeeff",
    "8ea2b7ca516745bfeafc49904b496089",
)


@pytest.fixture(scope="session")
def aes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload's program."""
    sources = [AES.folder / source for source in AES.sources]
    output = tmp_path_factory.mktemp("aes") / "aes"
    return compile_c(output, sources, *STATIC_FLAGS, *AES.cflags)


@pytest.fixture(scope="session")
def cipher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cipher alone, with sanitizers."""
    folder = tmp_path_factory.mktemp("cipher")
    (folder / "caller.c").write_text(CALLER)
    sources = [folder / "caller.c", AES.folder / "aes.c"]
    return compile_c(folder / "cipher", sources, *SANITIZERS, f"-I{AES.folder}")


def execute(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("key", "iv", "plain", "sealed"),
    [(KEY, IV, PLAIN, SEALED), (BLOCK_KEY, "00" * 16, BLOCK_PLAIN, BLOCK_SEALED)],
)
def test_published_vectors(cipher: Path, key: str, iv: str, plain: str, sealed: str) -> None:
    assert execute(cipher, "encrypt", key, iv, plain).stdout == sealed
    assert execute(cipher, "decrypt", key, iv, sealed).stdout == plain


@pytest.mark.parametrize("blocks", [0, 1, 2, 32])
def test_the_way_there_and_back(cipher: Path, blocks: int) -> None:
    plain = (hashlib.sha256(bytes([blocks])).digest() * 16).hex()[: 32 * blocks]
    sealed = execute(cipher, "encrypt", KEY, IV, plain).stdout
    assert (sealed == plain) == (blocks == 0)
    assert execute(cipher, "decrypt", KEY, IV, sealed).stdout == plain


def test_the_description_names_what_the_program_has(aes: Path) -> None:
    assert execute(aes, "--list").stdout.split() == OPERATIONS
    assert {operation.bytes_per_iteration for operation in AES.operations} == {512}


def test_what_the_host_does_not_have_is_left_out(aes: Path) -> None:
    done = execute(aes, "--clock", *(name for name in OPERATIONS if "af_alg" not in name))
    assert (done.returncode, done.stdout) == (0, "")
    told = [line.split()[1] for line in done.stderr.splitlines()]
    assert told == [name for name in OPERATIONS if "af_alg" not in name and name not in USER]


def test_a_program_by_the_kernels_flags_stands_besides_it(aes: Path, tmp_path: Path) -> None:
    program = tmp_path / "aes"
    program.symlink_to(aes)
    record = tmp_path / "aes-kflags"
    record.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\n')
    record.chmod(0o755)
    done = execute(program, "--settle", "0", "user-kflags-decrypt")
    assert (done.returncode, done.stderr) == (0, "")
    words = (tmp_path / "called").read_text().split()
    assert words[0] == "--start"
    assert words[2:] == ["--settle", "0", "--iterations", "256", "user-kflags-decrypt"]

    record.write_text("#!/bin/sh\nexit 3\n")
    assert execute(program, "user-kflags-decrypt").returncode == 1


@pytest.mark.slow
def test_a_cipher_that_is_wrong_is_no_workload(tmp_path: Path) -> None:
    for source in AES.folder.glob("*.[ch]"):
        (tmp_path / source.name).write_text(source.read_text().replace("0x63", "0x62"))
    sources = sorted(tmp_path.glob("*.c"))
    wrong = compile_c(tmp_path / "wrong", sources, *STATIC_FLAGS, *AES.cflags)
    done = execute(wrong, "user-encrypt")
    assert done.returncode == 1
    assert "published vector" in done.stderr


@pytest.mark.parametrize("words", [("user",), ("--frobnicate",), ("--settle",)])
def test_a_slip_is_a_usage_error(aes: Path, words: tuple[str, ...]) -> None:
    assert execute(aes, *words).returncode == 2


def test_the_cipher_has_no_vector_instructions(tmp_path: Path) -> None:
    made = compile_c(tmp_path / "aes.o", [AES.folder / "aes.c"], "-c", *AES.cflags)
    found = instructions(made)
    assert len(found) > 100
    assert not [text for text in found if "%xmm" in text]


def test_each_loop_has_one_region(aes: Path) -> None:
    """There are two in user space and two through the socket; the kernel's have their own marks."""
    found = Counter(marks(aes))
    assert [found[kind] for kind in ("begin", "iter", "end")] == [4, 4, 4]
