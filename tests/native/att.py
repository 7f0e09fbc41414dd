# SPDX-License-Identifier: GPL-2.0-or-later
"""What objdump's AT&T text says of an instruction: its kind, and how often it reads and writes
memory. Written from the text alone, to check the plugin's reading of the bytes.
"""

import re

PREFIXES = frozenset(
    (
        *("lock", "rep", "repz", "repnz", "notrack", "bnd", "data16", "addr32", "rex", "rex.W"),
        *("cs", "ds", "es", "ss", "fs", "gs", "xacquire", "xrelease"),
    )
)
NO_ACCESS = re.compile(
    r"nop|endbr|lea[lqw]?$|prefetch|j[a-z]+$|loop|ud[012]|xgetbv|vzero|emms|cl[tcd]|st[cd]|invl|clflush"
    r"|clwb|cldemote|[lms]fence|bswap|c[wlqd]t[dlqo]|cwtl|sahf|lahf|hlt|cmc|fwait|rd[fg]sbase|wr[fg]sbase"
)
READ_ONLY = re.compile(
    r"cmp[bwlq]?$|test[bwlq]?$|bt[wlq]?$|cmov|movz|movs[bwl][wlq]|movslq|i?mul[bwlq]?$|i?div[bwlq]?$|tzcnt|lzcnt|bs[fr]"
    r"|popcnt|ver[rw]|l[gil]dt|ltr|ldmxcsr|vldmxcsr|x?rstors?|fx?rstor|xrstor|fxrstor|crc32|mulx|[sar]+[rl]x$|rorx"
    r"|bextr|bls|andn|f[cu]?i?(?:add|sub|mul|div|com|ld|bld)|fldcw|fldenv|frstor"
)
REWRITES = re.compile(
    r"(?:add|sub|and|or|xor|adc|sbb|inc|dec|neg|not|shl|shr|sar|sal|rol|ror|rcl|rcr|shld|shrd|xchg|xadd"
    r"|cmpxchg|bts|btr|btc)[bwlq]?$|cmpxchg(8|16)b"
)
WRITE_ONLY = re.compile(
    r"set[a-z]+$|f?xsave|fxsave|f[in]?i?st|fbstp|fnst|fnsave|s[gil]dt|str$|smsw|movnt[iq]|stmxcsr|vstmxcsr|movbe?$"
)
VECTOR_MOVE = re.compile(
    r"v?mov(?:[ahlu]p[sd]|d|q|dq[au](?:8|16|32|64)?|s[sd]|nt(?:dq|ps|pd))$|mov[bwlq]?$|movabs|v?pextr|v?extract|movbe"
    r"|vmaskmov|vpmov|vcvtps2ph|vpcompress|vpscatter"
)
STRINGS = {"movs": (1, 1), "stos": (0, 1), "lods": (1, 0), "scas": (1, 0), "cmps": (2, 0)}
SPECIALS = [
    (r"syscall", "syscall"), (r"sysret", "sysret"), (r"sysenter", "sysenter"),
    (r"sysexit", "sysexit"), (r"iret", "iret"), (r"int[13]?$", "int"), (r"swapgs", "swapgs"),
    (r"rdmsr", "rdmsr"), (r"wrmsr", "wrmsr"), (r"clts|lmsw", "mov-cr"), (r"invlpg$", "invlpg"),
    (r"invpcid", "invpcid"), (r"cpuid", "cpuid"), (r"ver[rw]", "verw"), (r"pause", "pause"),
    (r"lfence", "lfence"), (r"mfence", "mfence"), (r"sfence", "sfence"),
    (r"f?xsave|fxsave", "xsave"), (r"f?xrstor", "xrstor"), (r"l[fgs]s[lqw]?$|lss", "segment-load"),
    (r"lgdt", "lgdt"), (r"lidt", "lidt"), (r"lldt", "lldt"), (r"ltr", "ltr"),
    (r"wrfsbase", "wrfsbase"), (r"wrgsbase", "wrgsbase"), (r"rdtscp?", "rdtsc"),
    (r"rdpmc", "rdpmc"), (r"clflush|clwb", "clflush"), (r"monitor$", "monitor"),
    (r"mwait$", "mwait"), (r"ljmp|lcall|lret", "far-transfer"), (r"hlt", "hlt"),
    (r"in$|ins[bwl]", "in"), (r"out$|outs[bwl]", "out"), (r"wbinvd|invd", "wbinvd"),
    (r"xsetbv", "xsetbv"), (r"rdrand|rdseed", "rdrand"), (r"stac|clac", "stac-clac"),
    (r"cli$|sti$", "cli-sti"),
]  # fmt: skip
_SPECIAL = [(re.compile(pattern), name) for pattern, name in SPECIALS]
_JUMPS = re.compile(
    r"j[a-z]+$|l?jmp|l?call|l?ret|loop|iret|syscall|sysret|sysenter|sysexit|hlt$|ud2$|int[13o]?$"
)
_STRING = re.compile(r"(?:movs|stos|lods|scas|cmps|ins|outs)[bwlq]?$")
_SEGMENT = re.compile(r"%[defgs]s$")


def parse(text: str) -> tuple[set[str], str, list[str]]:
    """Prefixes, mnemonic and operands."""
    words = text.split("<", maxsplit=1)[0].split("#", maxsplit=1)[0].split()
    prefixes = set()
    while words and (words[0] in PREFIXES or words[0].startswith("rex")):
        prefixes.add(words.pop(0))
    if not words:
        return prefixes, "", []
    operands = re.split(r",(?![^(]*\))", " ".join(words[1:])) if len(words) > 1 else []
    return prefixes, words[0], operands


def _is_memory(operand: str) -> bool:
    if operand.startswith("%st("):
        return False
    return "(" in operand or re.match(r"\*?(0x|%[c-g]s:)", operand) is not None


def special(prefixes: set[str], mnemonic: str, operands: list[str]) -> str:
    """The kind of a special instruction, or ""."""
    for pattern, name in _SPECIAL:
        if pattern.match(mnemonic):
            return name
    joined = ",".join(operands)
    if mnemonic.startswith("mov") and re.search(r"%cr\d", joined):
        return "write-cr3" if joined.endswith("%cr3") else "mov-cr"
    if mnemonic.startswith("mov") and re.search(r"%(db|dr)\d", joined):
        return "mov-dr"
    if (
        (mnemonic.startswith("mov") or mnemonic == "pop")
        and operands
        and _SEGMENT.match(operands[-1])
    ):
        return "segment-load"
    if "lock" in prefixes or (mnemonic.startswith("xchg") and any(map(_is_memory, operands))):
        return "lock"
    return ""


def jumps(prefixes: set[str], mnemonic: str) -> bool:
    """Whether something else than the next instruction may follow."""
    repeated = prefixes & {"rep", "repz", "repnz"} and _STRING.match(mnemonic)
    return bool(_JUMPS.match(mnemonic) or repeated)


def _stack(mnemonic: str, operands: list[str]) -> tuple[int, int] | None:
    memory = any(map(_is_memory, operands))
    if re.match(r"call[q]?$", mnemonic):
        return int(memory and operands[0].startswith("*")), 1
    if re.match(r"push[wq]?$", mnemonic):
        return int(memory), 1
    if re.match(r"pop[wq]?$", mnemonic):
        return 1, int(memory)
    if re.match(r"pushf", mnemonic):
        return 0, 1
    if re.match(r"ret[q]?$|leave|popf|iret|lret", mnemonic):
        return 1, 0
    return None


def accesses(mnemonic: str, operands: list[str]) -> tuple[int, int] | None:
    """Memory operands read and written; None where this table does not know."""
    memory = [_is_memory(operand) for operand in operands]
    if mnemonic[:-1] in STRINGS and len(operands) == 2 and "%xmm" not in "".join(operands):
        return STRINGS[mnemonic[:-1]]
    if (stack := _stack(mnemonic, operands)) is not None:
        return stack
    if re.match(r"jmp", mnemonic) and operands and operands[0].startswith("*"):
        return int(memory[0]), 0
    if NO_ACCESS.match(mnemonic) or not any(memory):
        return (0, 0) if not mnemonic.startswith(("ins", "outs", "xlat", "maskmov")) else None
    return _with_operand(mnemonic, operands, memory)


def _with_operand(mnemonic: str, operands: list[str], memory: list[bool]) -> tuple[int, int] | None:
    found: tuple[int, int] | None = None
    if READ_ONLY.match(mnemonic):
        found = 1, 0
    elif REWRITES.match(mnemonic):
        found = 1, int(memory[-1] or mnemonic.startswith("xchg"))
    elif VECTOR_MOVE.match(mnemonic):
        found = (0, 1) if memory[-1] else (1, 0)
    elif WRITE_ONLY.match(mnemonic):
        found = 0, 1
    elif "mm" in operands[-1] and not memory[-1]:
        found = 1, 0
    return found
