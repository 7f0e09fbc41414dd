# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile files: images, packages, configs, CPUs, orders, defaults and times."""

import gzip
import json
import random
import struct
from pathlib import Path

from hostile_made import ANSWERS, ESCAPE_BYTES, ESCAPES, Command, built, file, odd_path, program

from tests.cpus.good_file import GOOD
from tests.kernels.packages.test_damages import SAMPLES, damaged
from tests.kernels.packages.test_members import cpio, rpm, tar
from tests.kernels.samples import bzimage, elf_header, member
from tests.kernels.trees import fake_tree
from tests.measures.clock.made_runs import content, write_boots


def _elf(chance: random.Random) -> bytes:
    """An ELF file whose header says what is not so."""
    made = bytearray(elf_header(62))
    fields = struct.pack("<QQ", chance.choice((0, 64, 1 << 63, (1 << 64) - 1, 40)), 64)
    made[32:48] = fields
    made[54:64] = struct.pack(
        "<HHHHH", 56, chance.choice((0, 1, 0xFFFF)), 64, chance.choice((0, 9, 0xFFFF)), 0xFFFF
    )
    made[0x100:0x120] = chance.randbytes(32)
    return bytes(made)


def _zboot(chance: random.Random) -> bytes:
    """An EFI image that unpacks itself, with a lie about where its payload is."""
    bomb = gzip.compress(bytes(600 << 20), 1) if chance.random() < 0.3 else gzip.compress(b"x")
    at, size = chance.choice(((0x40, len(bomb)), (1 << 31, 1 << 31), (0x40, 0xFFFFFFFF), (0, 0)))
    head = struct.pack("<2sxx4sII8x", b"MZ", b"zimg", at, size)
    kind = chance.choice((b"gzip", b"zstd22", b"\x1b[2J", b"lzma", b"\xff" * 32))
    return (head + kind).ljust(64, b"\0") + bomb


def image(folder: Path, chance: random.Random) -> Command:
    """Make what is given as a kernel's image."""
    banner = f"6.1{ESCAPES} (x@y) #1"
    contents = [
        b"",
        b"\0" * 64,
        bzimage(),
        bzimage(banner),
        bzimage(protocol=0xFFFF),
        bzimage()[:600],
        _elf(chance),
        _elf(chance),
        elf_header(62, big_endian=True),
        elf_header(0xFFFF),
        elf_header(62, bits=32)[:40],
        _zboot(chance),
        _zboot(chance),
        gzip.compress(bytes(700 << 20), 1),
        b"\x1f\x8b" + bytes(30),
        ESCAPE_BYTES * 100,
    ]
    path = file(folder, chance, chance.choice(("vmlinuz", f"vm{ESCAPES}", "a,modules=b")), contents)
    more = chance.choice(("", "", ",modules=/", f",modules={path}", f",modules={ESCAPES}"))
    return Command(("run", f"image:{path}{more}", "--timeout", "3", "--seconds", "1", "--", "true"))


def config(folder: Path, chance: random.Random) -> Command:
    """Make a config or a fragment."""
    lines = [
        b"CONFIG_TMPFS=y\n",
        b"CONFIG_X=" + b"9" * 100_000 + b"\n",
        b'CONFIG_X="$(shell touch x)"\n',
        b'CONFIG_X="' + ESCAPE_BYTES + b'"\n',
        b"CONFIG_" + b"A" * 1_000_000 + b"=y\n",
        b"# CONFIG_\x1b[2J is not set\n",
        b"CONFIG_X=y\0\n" * 3,
        b'CONFIG_X="a\\"\n',
        b"=\n" * 1000,
        b"".join(b"CONFIG_N%d=y\n" % one for one in range(200_000)),
        b"CONFIG_X=`touch x`\r\n",
    ]
    path = file(folder, chance, chance.choice(("a.config", ".config", "frag")), lines)
    return built(folder, chance.choice(("", "base:")) + str(path))


def cpu(folder: Path, chance: random.Random) -> Command:
    """Make a CPU file."""
    values = (
        "-1",
        "0",
        "1e400",
        "nan",
        "inf",
        "-inf",
        "9" * 400,
        "true",
        '""',
        "[]",
        "1.5",
        f"0x{'f' * 64}",
        "[[[1]]]",
        "{a=1}",
        "1979-05-27",
        '"\\u001b[2J"',
    )
    lines = [line for line in GOOD.splitlines() if " = " in line]
    line = chance.choice(lines)
    other = f"{line.partition(' = ')[0]} = {chance.choice(values)}"
    contents = [
        GOOD.replace(line, other),
        GOOD.replace(line, other),
        GOOD.replace(line, other),
        GOOD.replace(line, f"{line}\n{line}"),
        "a = " + "[" * 100_000,
        "a." * 50_000 + "b = 1",
        "[" + "a." * 100_000 + "b]",
        GOOD.replace("mine", "\\u001b[2J"),
        "a = " + "9" * 900_000,
        GOOD.replace('name = "mine"', 'name = "../../x"'),
        "x = 1\n" * 3,
        "\x00" * 100,
        GOOD.replace('title = "', f'like = "mine"\ntitle = "{ESCAPES[-1]}'),
        f'"{ESCAPES[-2:]}" = 1',
        "a = {b = " * 50_000,
        "a" * (2 << 20),
    ]
    path = file(folder, chance, "mine.toml", [one.encode() for one in contents])
    if chance.random() < 0.3:
        (folder / "work/config/cpus").mkdir(parents=True)
        path.rename(folder / "work/config/cpus/mine.toml")
        where = {"KDELTA_CONFIG_DIR": str(folder / "work/config")}
        return Command(chance.choice((("cpus",), ("cpus", "mine"), ("cpus", "--json"))), where)
    more = chance.choice(("", ",l2=1e400", ",clock=nan", ",l2=-1KiB", f",{ESCAPES}=1", ",=,="))
    return Command(("cpus", f"{path}{more}"))


def order(folder: Path, chance: random.Random) -> Command:
    """Make an order file of functions."""
    contents = [
        b"lock\nlist_add\n",
        b"lock\n" * 100_000,
        ESCAPE_BYTES + b"\n",
        b"x" * 10_000_000,
        b"*(.text)\n} /DISCARD/ : { *(*) }\nINPUT(/etc/passwd)\n",
        b"$(touch x)\n`touch x`\n;:\n",
        b"a\0b\n",
        b"lock extra words\n",
        b"../../x\n@/etc/passwd\n--version\n-o /tmp/x\n",
        b"".join(b"f%d\n" % one for one in range(1_000_000)),
    ]
    return built(folder, f"order:{file(folder, chance, 'order', contents)}")


def defaults(folder: Path, chance: random.Random) -> Command:
    """Make a file of defaults."""
    text = ESCAPES.replace("\x7f", "").encode("unicode_escape").decode().replace("\\x", "\\u00")
    contents = [
        "[all]\njobs = 99999999999999999999999\n",
        f'[all]\nqemu = "{text}"\n',
        "[all]\nmargin = nan\n",
        f'["{text}"]\na = 1\n',
        f'[all]\n"{text}" = 1\n',
        "[all]\njobs = [[1]]\n",
        "a = " + "[" * 50_000,
        "all = 1\n",
        '[all]\nqemu = "./evil"\n',
        "[prune]\ncache = inf\n",
        "[prune]\ncache = -1\n",
        "[build]\nhelp = true\n",
        "[all]\nhtml = '../../canary/file'\n",
        "[build]\nfuzz = 1979-05-27\n",
        "[all]\nfile = ['/']\n[build]\nkernels = ['x']\n",
        "\xff\xfe",
        "[compare]\nbudget = 'x'\n",
    ]
    program(folder, "evil")
    path = file(folder, chance, "defaults.toml", [one.encode("latin-1") for one in contents])
    words = chance.choice((("doctor",), ("build", fake_tree(folder / "work")), ("prune",)))
    return Command(words, {"KDELTA_DEFAULTS": str(path)})


def package(folder: Path, chance: random.Random) -> Command:
    """Make a package, by which a kernel is given."""
    outside = "../../../canary/new"
    bomb = member("boot/vmlinuz-1")[0]
    bomb.size = 1 << 45
    contents = [
        damaged(SAMPLES[chance.choice(sorted(SAMPLES))](), chance),
        tar([member(outside, b"HOSTILE")]),
        rpm(cpio([(outside, b"HOSTILE", 0o100644)])),
        rpm(cpio([(f"boot/vmlinuz-{ESCAPES}", bzimage(ESCAPES), 0o100644)])),
        rpm(cpio([("boot/vmlinuz-1", b"", 0o100644)], claimed=0xFFFFFFFF)),
        bomb.tobuf() + bytes(1024),
        rpm(gzip.compress(bytes(1 << 29), 1)),
        tar([member(f"{'d/' * 3000}x", b"1")]),
        rpm(cpio([("boot/vmlinuz-1", b"/etc/shadow", 0o120777)])),
    ]
    path = file(folder, chance, chance.choice(("k.rpm", f"k{ESCAPES}.rpm", "k.pkg.tar")), contents)
    spec = chance.choice(("rpm:", "pkg:", "image:"))
    return Command(("run", f"{spec}{path}", "--timeout", "3", "--seconds", "1", "--", "true"))


def clock_folders(folder: Path) -> tuple[Path, Path]:
    """Make the files of two kernels' boots, without a fault."""
    boots = [{"a": 100.0 + at / 10, "b": 5.0} for at in range(9)]
    work = folder / "work"
    return write_boots(work / "A", *boots), write_boots(work / "B", *boots, first=60)


def clock(folder: Path, chance: random.Random) -> Command:
    """Make files of times, as bundles write them."""
    base, other = clock_folders(folder)
    good = (base / "0.json").read_bytes()
    name = chance.choice((ESCAPES, "../../x", "", "a" * 1_000_000, "<script>", "\ud800"))
    value = chance.choice((-1, 0, 1 << 80, 1e308, -1e308))
    lines = good.splitlines(keepends=True)
    contents = [
        good,
        content({name: 5.0}),
        content({"a": 5.0}, release=ESCAPES, cpu_model=ESCAPES, boot_id=name),
        content({"a": 5.0}, when=value),
        content({f"r{at}": 5.0 for at in range(20_000)}),
        good.replace(b'"samples":[[', b'"samples":[[-1,0],[0,0],[9999999999999999999999,1],['),
        good.replace(b"300", b"NaN"),
        good.replace(b"300", b"1e999"),
        lines[0] * 1000,
        b"".join(lines[::-1]),
        b"[" * 1_000_000,
        b'{"kdelta_bundle":' * 100_000,
        b"",
        b"\0" * 4096,
        json.dumps({"a": ESCAPES}).encode(),
        good.replace(b"6.12.0", ESCAPE_BYTES),
        good + good,
        good[: len(good) // 2],
    ]
    for at in range(chance.randint(1, 4)):
        (base / f"{at}.json").unlink()
        file(folder, chance, f"A/{at}.json", contents)
    if chance.random() < 0.3:
        odd_path(folder, chance, f"B/{chance.choice((ESCAPES, 'x.json', '100.json'))}")
    more = chance.choice(((), ("--json",), ("--html", folder / "work/out.html")))
    return Command(("clock", "judge", base, other, *more), codes=(*ANSWERS, 2, 3))


def output(folder: Path, chance: random.Random) -> Command:
    """Name odd paths for a report."""
    base, other = clock_folders(folder)
    made = odd_path(folder, chance, chance.choice(("out", ESCAPES)))
    path = chance.choice(
        (
            made,
            made,
            made / "x",
            "/",
            "",
            ".",
            "-",
            "/proc/self/x",
            "x" * 5000,
            "a\n/b",
            "/dev/stdout",
            "/dev/full",
            b"\xff\xfe.html",
        )
    )
    return Command(("clock", "judge", base, other, "--html", path), codes=(*ANSWERS, 2, 3))
