# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile inputs, a kind each, made by a seed; here arguments, variables, paths and stores."""

import os
import random
import shutil
import sqlite3
from pathlib import Path

from hostile_files import clock, config, cpu, defaults, image, order, output, package
from hostile_made import ANSWERS, ESCAPES, Command, Maker, odd_path, program
from hostile_sources import mailbox, patch, repository, revision, series

from tests.kernels.git_trees import commit
from tests.kernels.trees import fake_tree

_VALUES: tuple[str | bytes, ...] = (
    *("", " ", "nan", "inf", "-1", "1e999", "9" * 5000, ESCAPES, b"\xff\xfe", "/", "relative"),
    *("/dev/null", "/proc", "x" * 100_000, "file:///etc/passwd", "a\nb", "~", "$(touch x)", "%s%n"),
)

_VARIABLES = (
    *("KDELTA_CACHE_DIR", "KDELTA_DATA_DIR", "KDELTA_CONFIG_DIR", "KDELTA_CACHE_GIB"),
    *("KDELTA_PIN_URL", "KDELTA_DEFAULTS", "DEBUGINFOD_URLS", "NO_COLOR", "LANG", "LC_ALL", "TERM"),
    *("COLUMNS", "LINES", "TZ", "XDG_CACHE_HOME", "PAGER", "GIT_DIR", "GIT_EXTERNAL_DIFF"),
    *("GIT_SSH_COMMAND", "KDELTA_CALL", "LD_LIBRARY_PATH", "http_proxy", "CC", "MAKEFLAGS", "USER"),
    *("SHELL", "EDITOR", "COLORTERM", "FORCE_COLOR"),
)


def variable(folder: Path, chance: random.Random) -> Command:
    """Put rubbish into variables of the environment."""
    chosen = {name: chance.choice(_VALUES) for name in chance.sample(_VARIABLES, 3)}
    # A cache and a store are where they are named to be, if that is a folder that can be written.
    for one in ("KDELTA_CACHE_DIR", "KDELTA_DATA_DIR", "XDG_CACHE_HOME"):
        if chosen.get(one) in ("/", ESCAPES, "x" * 100_000, ""):
            chosen[one] = "/dev/null"
    words: tuple[tuple[str | Path, ...], ...] = (
        ("cpus",),
        ("runs",),
        ("report", "last"),
        ("kernels",),
        ("workloads", "--json"),
        ("prune",),
        ("check",),
        ("build", fake_tree(folder / "work")),
        ("doctor",),
        ("build", f"git:{folder}@HEAD"),
    )
    return Command(chance.choice(words), chosen)


def path_with_dot(folder: Path, chance: random.Random) -> Command:
    """Put the working folder into PATH, with programs named as those that kdelta starts."""
    tree = fake_tree(folder / "work")
    commit(tree, "one")
    names = (
        *("git", "gcc", "make", "ld", "zstd", "nproc", "uname", "patch", "dpkg", "ar", "rpm2cpio"),
    )
    for one in names:
        program(folder, one)
        shutil.copy2(folder / "work" / one, tree / one)
    usual = os.environ["PATH"]
    value = chance.choice(
        (f".:{usual}", f":{usual}", f"..:.:{usual}", f"./:{usual}", f"linux:{usual}")
    )
    words: tuple[tuple[str | Path, ...], ...] = (
        ("build", f"git:{tree}@HEAD"),
        ("build", tree),
        ("series", tree, "HEAD..HEAD"),
        ("doctor",),
    )
    return Command(chance.choice(words), {"PATH": value})


_ODD_WORDS: tuple[str | bytes, ...] = (
    *("", " ", "x" * 100_000, ESCAPES, b"\xff\xfe", "-" * 1000, "--", "nan", "1e999", "-1"),
    *("9" * 5000, "\n", "+", "+" * 1000, "image:", "deb:", "git:@", "tree:" + "../" * 2000),
    *("rpm:,,,,", "a+b:c@d=e", "%s%n{}", "../../x", "deb:x;touch x", "deb:-o=x", "deb:../../x"),
    *(f"deb:{'a' * 300}", "deb-src:$(touch x)", "pkg:http://[", "rpm:a@ext::x"),
    *("cmdline:" + ESCAPES, "+CONFIG_X=" + "y" * 10000, "image:/dev/zero", "\u202e\u2028"),
)

_COMMANDS = (
    *("compare", "gate", "run", "show", "report", "profile", "diff", "rm", "log", "cpus", "schema"),
    *("completion", "workloads", "build", "ablate", "bisect", "series", "place", "layout", "clock"),
    *("backup", "crossing", "kernels", "pin", "nonsense"),
)

_OPTIONS = (
    *("--cpu", "-w", "-o", "--file", "--append", "--memory", "--qemu", "--qemu-cpu", "--budget"),
    *("--margin", "--timeout", "--seconds", "--html", "--from", "--to", "-C", "--layouts"),
    *("--format", "--output", "-n"),
)


def argument(_: Path, chance: random.Random) -> Command:
    """Give arguments that are too long, no text, or no such thing."""
    words = [
        chance.choice((*_ODD_WORDS, chance.choice(_OPTIONS))) for _ in range(chance.randint(1, 4))
    ]
    return Command((chance.choice(_COMMANDS), *words), codes=(*ANSWERS, 2, 3))


def guest_file(folder: Path, chance: random.Random) -> Command:
    """Name odd files for a guest, and odd programs."""
    made = odd_path(folder, chance, chance.choice(("f", f"f{ESCAPES}", "f:g")))
    target = chance.choice(
        ("", ":/init", ":/job", ":../../x", ":/proc/1/mem", f":/{ESCAPES}", ":", ":/dev/mem")
    )
    script = folder / "work/script"
    script.write_text(
        chance.choice(
            ("#!" + "x" * 5000, f"#!{script}\n", "#!\n", "#! \x1b[2J\n", "\x7fELF\x02\x01\x01")
        )
    )
    script.chmod(0o755)
    command = chance.choice((str(script), "true", str(made), "", ".", "/", b"\xff", ESCAPES))
    return Command(("run", "image:/dev/null", "--file", f"{made}{target}", "--", command))


def store(folder: Path, chance: random.Random) -> Command:
    """Make a store that another program wrote."""
    data = folder / "work/data"
    data.mkdir()
    path = data / "store.db"
    match chance.randrange(5):
        case 0:
            path.write_bytes(chance.randbytes(10_000))
        case 1:
            with sqlite3.connect(path) as base:
                base.execute("create table run (id text, kernel text)")
                base.execute("insert into run values (?, ?)", (ESCAPES, "../../x"))
                base.execute(f"pragma user_version = {chance.choice((0, 1, 5, 2**31 - 1, -1))}")
        case 2:
            odd_path(folder, chance, "data/blobs")
            path.touch()
        case 3:
            path.unlink(missing_ok=True)
            odd_path(folder, chance, "data/store.db")
        case _:
            path.write_bytes(b"SQLite format 3\0" + bytes(84) + chance.randbytes(4000))
    words = (
        ("runs",),
        ("report", "last"),
        ("show", "last"),
        ("check",),
        ("check", "--repair"),
        ("prune",),
        ("backup", str(folder / "work/copy")),
        ("rm", "last"),
        ("log",),
    )
    return Command(chance.choice(words), {"KDELTA_DATA_DIR": str(data)})


INPUTS: dict[str, Maker] = {
    one.__name__.replace("_", " "): one
    for one in (
        *(image, config, patch, mailbox, series, cpu, order, defaults, package, repository),
        *(revision, clock, output, variable, path_with_dot, argument, guest_file, store),
    )
}
"""Makers of hostile inputs by what they are of."""
