# SPDX-License-Identifier: GPL-2.0-or-later
"""Signs texts as gpg does (RFC 4880), with a key of our own: apt verifies them by its own verifier,
and no test needs a program that signs.
"""

import base64
import hashlib
import struct

_N = int(
    "c714387179a5f6d79cffaace4a28ac7720aa8fa584ef34ac7c75bf13b106a5fd8a2b21c78f29a1ffdfa4abb1"
    "9a2c06932dff8c4e0bef1b9219a1e7926d02ea31748b5ecc3d9b37836b53bd12457e43e466394dfb8220b99d"
    "9f78abc9f01f253fa430c0ef74c36ef9bd2ab4b53469d7ddc2192f059aa9fe81c9b5f4f8b49d8a9f11f516f2"
    "69e66ad153f6727e32de280f20dd93d738301dd44376891b973087212bc2fbcf88faeb4f8af9d6be459e393f"
    "93a24426b83f83a7755fd137be74b3d7217de93842187b6e9bfba259857989f23fc649d1e56c89362013c6d7"
    "911fec902974cdd8e580209291990c68c6c76f5580e05ba9f7192a2617807b55a6d85d39",
    16,
)
_D = int(
    "b144c321e055b560b72f3df4253ae49fcb59b5418906cb9b8fd3f54a5e86f205bb23bf1788d664a78888844e"
    "485f4d977f0d1fed5b5915eed99e3eab3720b2534958d517feff98c6102ae7a03e7b398f46ab5e5247c44624"
    "221d7cb2fb7b705aa424b998401bca54dd6a0ab194336f81cad54bf6ac8b14d2933fd01c2a10629ec16fe4b9"
    "8220bcce53b4174740d6d950f7c13738988a94a9a349ea852dacca1afec96601dc36f3e0a6b04a0a7a169d01"
    "c013be8d2827dd31ef6c25ed781d50de099029983f4556d28c218e0dd32c7b78635d86bc3430df46fcf87e3d"
    "48c2514f18b8885b7cb272ae3a4bb092458af52cab6b23597b62346a8b0e1c5465ae3475",
    16,
)
"""A key of 2048 bits for tests; nothing but tests believes it."""

_E = 65537
MADE = 1_700_000_000
"""When the key was made, in seconds since the epoch; one of another time is another key."""
_USER = b"A test <test@example.org>"
_SHA256_INFO = bytes.fromhex("3031300d060960864801650304020105000420")
_TEXT, _CERTIFICATE = 0x01, 0x13
_SIGNATURE, _KEY, _USER_ID = 2, 6, 13


def public_key(made: int = MADE) -> bytes:
    """Returns the key, as a file of keys has it."""
    certified = _hashed_key(made) + b"\xb4" + _size(_USER) + _USER
    certificate = _signature(_CERTIFICATE, certified, made)
    return _packet(_KEY, _key(made)) + _packet(_USER_ID, _USER) + _packet(_SIGNATURE, certificate)


def signed(text: str) -> bytes:
    """Returns a text with its signature below, as an InRelease file has it."""
    lines = [line.rstrip(" \t\r") for line in text.rstrip("\n").split("\n")]
    signature = _signature(_TEXT, "\r\n".join(lines).encode())
    armour = base64.encodebytes(_packet(_SIGNATURE, signature)).decode()
    return (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n"
        + "\n".join(lines)
        + f"\n-----BEGIN PGP SIGNATURE-----\n\n{armour}-----END PGP SIGNATURE-----\n"
    ).encode()


def _key(made: int) -> bytes:
    return b"\x04" + struct.pack(">IB", made, 1) + _number(_N) + _number(_E)


def _hashed_key(made: int) -> bytes:
    key = _key(made)
    return b"\x99" + struct.pack(">H", len(key)) + key


def _signature(kind: int, data: bytes, made: int = MADE) -> bytes:
    fingerprint = hashlib.sha1(_hashed_key(made), usedforsecurity=False).digest()
    fields = _field(2, struct.pack(">I", made)) + _field(33, b"\x04" + fingerprint)
    fields += _field(27, b"\x03") if kind == _CERTIFICATE else b""  # it signs
    head = bytes([4, kind, 1, 8]) + struct.pack(">H", len(fields)) + fields
    digest = hashlib.sha256(data + head + b"\x04\xff" + _size(head)).digest()
    issuer = _field(16, fingerprint[-8:])
    padded = b"\x00\x01".ljust(256 - 1 - len(_SHA256_INFO) - len(digest), b"\xff")
    value = int.from_bytes(padded + b"\x00" + _SHA256_INFO + digest)
    return head + struct.pack(">H", len(issuer)) + issuer + digest[:2] + _number(pow(value, _D, _N))


def _field(kind: int, content: bytes) -> bytes:
    return bytes([len(content) + 1, kind]) + content


def _packet(tag: int, content: bytes) -> bytes:
    return bytes([0xC0 | tag, 0xFF]) + _size(content) + content


def _size(content: bytes) -> bytes:
    return struct.pack(">I", len(content))


def _number(value: int) -> bytes:
    bits = value.bit_length()
    return struct.pack(">H", bits) + value.to_bytes((bits + 7) // 8)
