# SPDX-License-Identifier: GPL-2.0-or-later
"""What objdump's text says of a 32-bit ARM instruction. Written from the text alone, to check the
plugin's reading of the bytes.
"""

import re
from typing import NamedTuple

_COND = "(?:eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al)?"
_REGISTERS = [*(f"r{n}" for n in range(10)), "sl", "fp", "ip", "sp", "lr", "pc"]
_SIMPLE = [
    ("svc", "svc"), ("eret", "exception-return"), ("rfe(?:ia|ib|da|db)?", "exception-return"),
    ("srs(?:ia|ib|da|db)?", "srs"), ("bkpt|udf|hlt", "trap"), ("hvc", "hvc"), ("smc", "smc"),
    ("cps(?:ie|id)?", "cps"), ("setend", "setend"), ("mrs", "mrs"), ("msr", "msr"), ("dmb", "dmb"),
    ("dsb|ssbb|pssbb", "dsb"), ("isb", "isb"), ("csdb", "csdb"), ("yield", "yield"),
    ("wfe", "wfe"), ("wfi", "wfi"), ("sevl?", "sev"), ("clrex", "clrex"), ("swpb?", "swp"),
    ("ldaexd?[bh]?|ldrex[bhd]?", "ldrex"), ("stlexd?[bh]?|strex[bhd]?", "strex"),
    ("lda[bh]?", "lda"), ("stl[bh]?", "stl"), ("vmrs|vmsr|fmxr|fmrx", "vfp-system"),
    ("cdp2?|ldc2?l?|stc2?l?|mcrr2|mrrc2|mcr2|mrc2", "coprocessor"),
]  # fmt: skip
_SIMPLE_RE = [(re.compile(f"(?:{p}){_COND}$"), name) for p, name in _SIMPLE]
_JUMP = re.compile(
    rf"(?:(?:b|bl|bx|blx|bxj|svc|eret|hvc|smc|udf){_COND}|cbn?z|tb[bh]{_COND}|rfe\w*|bkpt|hlt|wf[ei]{_COND})$"
)
_DATA = re.compile(
    rf"(?:and|eor|sub|rsb|add|adc|sbc|rsc|orr|mov|bic|mvn|lsl|lsr|asr|ror|rrx)(s)?{_COND}$"
)
_ONE = re.compile(rf"(ldr|str)(?:b|h|sb|sh)?t?{_COND}$")
_PAIR = re.compile(rf"(ldr|str)d{_COND}$")
_MANY = re.compile(
    rf"(v|f)?(ldm|stm|push|pop)(?:ia|ib|da|db|fd|fa|ed|ea|dbx|iax)?{_COND}(?:x{_COND})?$"
)
_NEON = re.compile(rf"v(ld|st)[1-4]{_COND}$")
_VFP_ONE = re.compile(rf"v(ld|st)r{_COND}$")
_VFP_OFFSET = re.compile(rf"(?:ldc|stc)2?l?{_COND}$")
_PLAIN_CP15 = ("cp15-write", "cp15-read")
# Of coprocessors that no ARMv7 has, by their old names.
_OLD = re.compile(r"cf|lfm|sfm|ldf|stf|setpan|bl?xns|w[a-z]+$|mia|mar|mra|t[a-z]+[bhw]\d?$")


class Said(NamedTuple):
    special: str
    loads: int
    stores: int
    jumps: bool


def _listed(operands: str) -> list[str]:
    """The registers between braces; a range is all of them."""
    found: list[str] = []
    inner = re.sub(r"\[.*?\]", "", operands.partition("{")[2].partition("}")[0])
    for part in filter(None, (p.strip() for p in inner.split(","))):
        first, _, last = part.partition("-")
        first, last = first.strip(), last.strip()
        if not last:
            found.append(first)
        elif first in _REGISTERS:
            found += _REGISTERS[_REGISTERS.index(first) : _REGISTERS.index(last) + 1]
        else:
            found += [f"{first[0]}{n}" for n in range(int(first[1:]), int(last[1:]) + 1)]
    return found


def _cp15(name: str, operands: list[str]) -> str:
    read = name.startswith("mr")
    if name[:4] in ("mcrr", "mrrc"):
        if operands[-1] == "cr14":
            return "timer"
        return _PLAIN_CP15[read]
    crn, crm = operands[3], operands[4]
    opc2 = int(operands[5].strip("{}"))
    kinds = {
        "wfi": crn == "cr7" and (crm, opc2) == ("cr0", 4),
        "cp15-barrier": crn == "cr7" and (crm, opc2) in {("cr10", 4), ("cr10", 5), ("cr5", 4)},
        "cache-maintenance": crn == "cr7" and not read and crm not in {"cr8", "cr4"},
        "tlb-maintenance": crn == "cr8",
        "thread-id": crn == "cr13" and opc2 >= 2,
        "timer": crn == "cr14",
    }
    return next((kind for kind, it_is in kinds.items() if it_is), _PLAIN_CP15[read])


def special(name: str, operands: str) -> str:
    """The kind of special instruction, or nothing."""
    words = [word.strip() for word in operands.split(",")]
    if re.match(rf"(?:mcrr?|mrr?c){_COND}$", name):
        return _cp15(name, words) if words[0] in ("15", "p15") else "coprocessor"
    if (data := _DATA.match(name)) and words[0] == "pc" and data[1]:
        return "exception-return"
    if _MANY.match(name) and operands.endswith("^") and _to_pc(name, operands):
        return "exception-return"
    if name == "sb":
        return "sb"
    return next((kind for pattern, kind in _SIMPLE_RE if pattern.match(name)), "")


def accesses(name: str, operands: str) -> tuple[int, int]:
    """Loads and stores."""
    store = bool(re.match(r"v?(?:f?st|push)", name))
    if _ONE.match(name) or _VFP_ONE.match(name) or _VFP_OFFSET.match(name):
        times = 1
    elif _PAIR.match(name):
        times = 2
    elif _MANY.match(name) or _NEON.match(name):
        times = 1 if name == "vld1" and "[]" in operands else len(_listed(operands))
    elif re.match(r"(?:ldrex|ldaex|lda|strex|stlex|stl)", name):
        times = 2 if re.match(r"(?:ldrexd|ldaexd|strexd|stlexd)", name) else 1
    elif name.startswith("tb"):
        times = 1
    elif name.startswith("swp"):
        return 1, 1
    elif name.startswith(("rfe", "srs")):
        return (2, 0) if name.startswith("rfe") else (0, 2)
    else:
        times = 0
    return (0, times) if store else (times, 0)


def _to_pc(name: str, operands: str) -> bool:
    first = operands.partition(",")[0].strip()
    if _DATA.match(name) or _ONE.match(name):
        return first == "pc" and not name.startswith("str")
    many = _MANY.match(name)
    return bool(many) and name.startswith(("ldm", "pop")) and "pc" in _listed(operands)


def read(text: str) -> Said | None:
    """What the text says; None where objdump has no name for it or calls it unpredictable."""
    plain = re.split("@|;|<", text, maxsplit=1)[0].strip()
    if not plain or plain.startswith(".") or re.search("undefined|UNPREDICTABLE|illegal", text):
        return None
    name, _, operands = plain.partition("\t")
    name, operands = name.strip().removesuffix(".n").removesuffix(".w"), operands.strip()
    name = re.sub(r"\..*", "", name)
    if _OLD.match(name) or "?" in name or "<" in plain or "FPSCR_" in plain or "P0" in plain:
        return None
    kind = special(name, operands)
    wfi = kind == "wfi"
    return Said(
        kind,
        *accesses(name, operands),
        bool(_JUMP.match(name) or wfi or _to_pc(name, operands) or kind == "exception-return"),
    )
