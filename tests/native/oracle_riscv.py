# SPDX-License-Identifier: GPL-2.0-or-later
"""What objdump's text says of a RISC-V instruction. Written from the text alone, to check the
plugin's reading of the bytes.
"""

import re

from .oracle_arm import Said

_BY_NAME = [
    ("ecall", "ecall"), ("ebreak", "ebreak"), ("sret", "sret"), ("mret", "mret"), ("wfi", "wfi"),
    (r"sfence\..*|sinval\..*", "sfence.vma"), (r"fence|fence\.tso", "fence"),
    (r"fence\.i", "fence.i"), ("pause", "pause"), (r"cbo\..*", "cache-maintenance"),
    (r"lr\..*", "lr"), (r"sc\..*", "sc"), (r"amo.*", "amo"),
    (r"f[rs]csr|f[rs]rm|f[rs]flags|fs(?:rm|flags)i", "csr-fp"),
    (r"rdcycle|rdtime|rdinstret", "csr-counter"),
]  # fmt: skip
_SPECIAL = [(re.compile(f"(?:{pattern})$"), kind) for pattern, kind in _BY_NAME]
_CSRS = {
    "sstatus": "csr-status", "sie": "csr-status", "sip": "csr-status", "satp": "csr-satp",
    "sscratch": "csr-trap", "sepc": "csr-trap", "scause": "csr-trap", "stval": "csr-trap",
    "sbadaddr": "csr-trap", "fcsr": "csr-fp", "frm": "csr-fp", "fflags": "csr-fp",
}  # fmt: skip
_LOAD = re.compile(r"l[bhw]u?$|ld$|fl[hwdq]$")
_STORE = re.compile(r"s[bhwd]$|fs[hwdq]$")
_JUMP = re.compile(
    r"(?:j|jr|jal|jalr|ret|call|tail|b(?:eq|ne|lt|ge|gt|le)(?:u?|z)|ecall|ebreak|[sm]ret|wfi)$"
)


def special(name: str, operands: str) -> str:
    """The kind of special instruction, or nothing."""
    if name.startswith("csr"):
        words = [word.strip() for word in operands.split(",")]
        register = words[1] if re.match(r"csrr?[wsc]?i?$", name) and name[3:4] == "r" else words[0]
        if re.match(r"cycle|time|instret|hpmcounter|0xc[01]", register):
            return "csr-counter"
        return _CSRS.get(register, "csr")
    return next((kind for pattern, kind in _SPECIAL if pattern.match(name)), "")


def read(text: str) -> Said | None:
    """What the text says; None where objdump has no name for it."""
    plain = re.split("#|<", text, maxsplit=1)[0].strip()
    name, _, operands = plain.partition("\t")
    name, operands = name.strip(), operands.strip()
    if not name or name.startswith((".", "0x")) or name == "unimp":
        return None
    kind = special(name, operands)
    loads = kind in ("lr", "amo") or bool(_LOAD.match(name))
    stores = kind in ("sc", "amo") or bool(_STORE.match(name))
    return Said(kind, int(loads), int(stores), bool(_JUMP.match(name)))
