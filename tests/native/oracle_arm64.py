# SPDX-License-Identifier: GPL-2.0-or-later
"""What objdump's text says of an arm64 instruction. Written from the text alone, to check the
plugin's reading of the bytes.
"""

import re

from .oracle_arm import Said

_BY_NAME = [
    ("svc", "svc"), ("eret[ab]*", "eret"), ("hvc", "hvc"), ("smc", "smc"),
    ("brk|hlt|udf|dcps[123]", "trap"), ("dmb", "dmb"), ("dsb|ssbb|pssbb|dfb", "dsb"),
    ("isb", "isb"), ("sb", "sb"), ("csdb", "csdb"), ("esb", "esb"), ("yield", "yield"),
    ("wfe", "wfe"),
    ("wfi", "wfi"), ("sevl?", "sev"), ("clrex", "clrex"), ("dc", "cache-maintenance"),
    ("ic", "cache-maintenance"), ("at", "address-translation"), ("tlbi", "tlb-maintenance"),
    ("sysl?|cfp|dvp|cpp", "sys"), ("lda?x[rp][bh]?", "ldxr"), ("stl?x[rp][bh]?", "stxr"),
    ("ld(?:a|la)r[bh]?|ldapu?r(?:s?[bhw])?", "ldar"), ("st(?:l|ll|lu)r[bh]?", "stlr"),
    ("(?:ld|st)(?:add|clr|eor|set|smax|smin|umax|umin)(?:a|l|al)?[bh]?", "atomic"),
    ("(?:swp|casp?)(?:a|l|al)?[bh]?", "atomic"),
]  # fmt: skip
_SPECIAL = [(re.compile(f"(?:{pattern})$"), kind) for pattern, kind in _BY_NAME]
_REGISTERS = {
    "daif": "daif", "ttbr0_el1": "ttbr", "ttbr1_el1": "ttbr", "contextidr_el1": "ttbr",
    "sp_el0": "thread-id", "tpidr_el0": "thread-id", "tpidrro_el0": "thread-id",
    "tpidr_el1": "thread-id", "icc_pmr_el1": "gic", "spsr_el1": "exception-state",
    "elr_el1": "exception-state", "esr_el1": "exception-state", "far_el1": "exception-state",
    "fpcr": "fp-control", "fpsr": "fp-control",
}  # fmt: skip
_PSTATE = re.compile(r"daifset|daifclr|spsel|pan|uao|dit|ssbs|tco")
_JUMP = re.compile(
    r"(?:b|bl|br|blr|ret|cbn?z|tbn?z|eret|svc|hvc|smc|brk|hlt|udf|dcps[123]|wf[ie]|drps|retaa|retab|eretaa|eretab"
    r"|bl?ra[ab]z?|b\.[a-z]+)$"
)
_PAIR = re.compile(r"(ld|st)n?p(?:sw)?$|stgp$")
_ONE = re.compile(r"(ld|st)t?u?r(?:s?[bhw])?$|(ld|st)tr(?:s?[bhw])?$|ldra[ab]$")
_STRUCTURES = re.compile(r"(ld|st)[1-4]r?$")


def _register_kind(name: str, words: list[str]) -> str:
    register = words[1] if name == "mrs" else words[0]
    if name == "msr" and _PSTATE.fullmatch(register) and words[1].startswith("#"):
        return "daif" if register.startswith("daif") else "pstate"
    if register in _REGISTERS:
        return _REGISTERS[register]
    if re.match(r"cnt|pmev|pmcc?filtr|s3_\d_c14_", register):
        return "timer"
    if register.startswith(("icc_", "ich_", "icv_")) or re.match(r"s3_0_c12_c(8|9|1\d)_", register):
        return "gic"
    return name


def _listed(operands: str) -> int:
    inner = operands.partition("{")[2].partition("}")[0]
    first, dash, last = inner.partition("-")
    if not dash:
        return inner.count(",") + 1
    numbers = [int(re.sub(r"\..*", "", word.strip())[1:]) for word in (first, last)]
    return (numbers[1] - numbers[0]) % 32 + 1


def special(name: str, operands: str) -> str:
    """The kind of special instruction, or nothing."""
    words = [word.strip() for word in operands.split(",")]
    if name in ("mrs", "msr"):
        return _register_kind(name, words)
    if name == "dc" and words[0] == "zva":
        return "dc-zva"
    return next((kind for pattern, kind in _SPECIAL if pattern.match(name)), "")


def accesses(name: str, operands: str, kind: str) -> tuple[int, int]:
    """Loads and stores."""
    if kind == "atomic":
        return (2, 2) if name.startswith("casp") else (1, 1)
    if kind == "dc-zva":
        return 0, 1
    if kind in ("ldxr", "stxr"):
        times = 2 if "xp" in name else 1
    elif kind in ("ldar", "stlr") or _ONE.match(name):
        times = 1
    elif _PAIR.match(name):
        times = 2
    elif _STRUCTURES.match(name):
        times = _listed(operands)
    else:
        times = 0
    return (0, times) if name.startswith("st") else (times, 0)


def read(text: str) -> Said | None:
    """What the text says; None where objdump has no name for it."""
    plain = re.split("//|<", text, maxsplit=1)[0].strip()
    name, _, operands = plain.partition("\t")
    name, operands = name.strip(), operands.strip()
    if (
        not name
        or name.startswith(".")
        or "undefined" in text
        or re.search(r"\bz\d|\tp\d+|\bp\d+[./]", plain)
    ):
        return None
    if re.match(r"(?:ld|st)z?2?g|(?:ld|st)64b|gmi|irg", name):
        return None
    kind = special(name, operands)
    return Said(kind, *accesses(name, operands, kind), bool(_JUMP.match(name)))
