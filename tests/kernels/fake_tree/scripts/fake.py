# SPDX-License-Identifier: GPL-2.0-or-later
"""What stands for kbuild in the fake tree: configs, and objects compiled when they have to be."""

import hashlib
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

TREE, OUT = Path(sys.argv[1]), Path(sys.argv[2])
FOLDERS = ("init", "kernel", "mm", "drivers")
ARCH, CROSS = os.environ["SRCARCH"], os.environ.get("CROSS_COMPILE", "")
SCRIPT = f"arch/{ARCH}/kernel/vmlinux.lds"
OF_ARCH = {"x86": "-fcf-protection=none", "arm": "-marm -march=armv7-a -msoft-float"}
FLAGS = "-O2 -D__KERNEL__ -ffreestanding -fno-pic -fno-asynchronous-unwind-tables " + OF_ARCH[ARCH]


Option = tuple[str, bool, list[str], list[str], int]
Config = dict[str, str]


def kconfig() -> list[Option]:
    """(name, prompt, depends, selects, choice number) of each option, in order."""
    found: list[Option] = []
    choice = members = 0
    for line in (TREE / "Kconfig").read_text().splitlines():
        words = line.split()
        if line.startswith("config "):
            found.append((words[1], False, [], [], choice))
        elif line.startswith("choice"):
            members += 1
            choice = members
        elif line.startswith("endchoice"):
            choice = 0
        elif words[:1] == ["bool"]:
            found[-1] = (found[-1][0], len(words) > 1, *found[-1][2:])
        elif words[:2] == ["depends", "on"]:
            found[-1][2].extend(words[2:])
        elif words[:1] == ["select"]:
            found[-1][3].append(words[1])
    return found


def read(path: Path) -> tuple[Config, str]:
    """The options that a config names, the last line of each: y or n; and its text."""
    text = path.read_text() if path.is_file() else ""
    lines = re.findall(r"^(?:CONFIG_(\w+)=(\S+)|# CONFIG_(\w+) is not set)", text, re.MULTILINE)
    return {name or off: value or "n" for name, value, off in lines}, text


def grant(asked: Config, text: str) -> Config:
    """What a config comes to."""
    options = kconfig()
    granted: Config = {}
    selected: set[str] = set()
    for name, prompt, depends, selects, choice in options:
        met = all(
            (granted.get(word.lstrip("!")) == "y") != word.startswith("!") for word in depends
        )
        on = prompt and met and asked.get(name) == "y"
        if choice:
            members = [one[0] for one in options if one[4] == choice]
            places = {one: text.rfind(f"CONFIG_{one}=y") for one in members}
            best = max(members, key=lambda one: (places[one], -members.index(one)))
            on = name == best
        on = on or name in selected
        if on:
            selected.update(selects)
        if on or (prompt and met):
            granted[name] = "y" if on else "n"
    return granted


def write(granted: Config) -> None:
    """The .config as kbuild writes it."""
    lines = ["#", "# Automatically generated file; DO NOT EDIT."]
    lines += ["# Linux/x86 6.12.99 Kernel Configuration", "#"]
    lines += [
        f"CONFIG_{name}=y" if value == "y" else f"# CONFIG_{name} is not set"
        for name, value in granted.items()
    ]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / ".config").write_text("\n".join(lines) + "\n")


def sync(granted: Config) -> None:
    """The headers and settings that objects are compiled with."""
    generated = OUT / "include/generated"
    generated.mkdir(parents=True, exist_ok=True)
    (OUT / "include/config").mkdir(exist_ok=True)
    on = [name for name, value in granted.items() if value == "y"]
    (generated / "autoconf.h").write_text("".join(f"#define CONFIG_{name} 1\n" for name in on))
    (OUT / "include/config/kernel.release").write_text("6.12.99\n")
    link = OUT / "source"
    if not link.is_symlink():
        link.symlink_to(TREE)


def objects(granted: Config) -> list[str]:
    """The objects of a config, relative to the output folder."""
    found: list[str] = []
    for folder in FOLDERS:
        for line in (TREE / folder / "Makefile").read_text().splitlines():
            match = re.match(r"obj-(y|\$\(CONFIG_(\w+)\)) \+= (.*)", line)
            if match and (match[1] == "y" or granted.get(match[2]) == "y"):
                found += [f"{folder}/{name}" for name in match[3].split()]
    return found


def compile_one(name: str, granted: Config) -> bool:
    """Compiles an object unless it is there as it would be; False when it fails."""
    source = next(p for p in ((TREE / name).with_suffix(e) for e in (".c", ".S")) if p.is_file())
    target = OUT / name
    target.parent.mkdir(parents=True, exist_ok=True)
    flags = FLAGS.replace("-O2", "-Os") if granted.get("OPTIMIZE_FOR_SIZE") == "y" else FLAGS
    env = {key: os.environ.get(f"KBUILD_BUILD_{key}", "?") for key in ("USER", "HOST")}
    words = [
        *shlex.split(os.environ.get("CC") or f"{CROSS}gcc"), *flags.split(),
        *shlex.split(os.environ.get("KCFLAGS") or ""),
        *shlex.split(os.environ.get("CFLAGS_KERNEL") or ""), f"-I{TREE}/include",
        "-include", f"{OUT}/include/generated/autoconf.h",
        f'-DBUILD_USER="{env["USER"]}"', f'-DBUILD_HOST="{env["HOST"]}"',
        f'-DBUILD_TIME="{os.environ.get("KBUILD_BUILD_TIMESTAMP", "now")}"',
        f"-fmacro-prefix-map={TREE}/=", *shlex.split(os.environ.get("KCPPFLAGS") or ""),
        "-c", "-o", str(target), str(source),
    ]  # fmt: skip
    headers = re.findall(r"#include <(linux/\w+\.h)>", source.read_text())
    used = [source, *(TREE / "include" / header for header in headers)]
    seen = sorted(set(re.findall(r"CONFIG_(\w+)", "".join(p.read_text() for p in used))))
    state = [words, [p.read_text() for p in used], [granted.get(one) for one in seen]]
    digest = hashlib.sha256(repr(state).encode()).hexdigest()
    stamp = target.with_suffix(".state")
    if target.is_file() and stamp.is_file() and stamp.read_text() == digest:
        return True
    print(f"  {'CC' if source.suffix == '.c' else 'AS'}      {name}", flush=True)
    if name == "kernel/slow.o":
        time.sleep(60)
    if subprocess.run(words, check=False).returncode:
        return False
    depends = [f"    $(wildcard include/config/{one}) \\" for one in seen]
    depends += [f"  {path} \\" for path in used[1:]]
    lines = [f"savedcmd_{SCRIPT} := {shlex.join(words)}", "", f"source_{name} := {source}", ""]
    lines += [f"deps_{name} := \\", *depends, ""]
    target.with_name(f".{target.name}.cmd").write_text("\n".join(lines))
    stamp.write_text(digest)
    return True


def linker_script() -> str:
    """The linker script, its macros replaced; no option has a say in it."""
    path = OUT / SCRIPT
    path.parent.mkdir(parents=True, exist_ok=True)
    words = ["cpp", "-P", f"-I{TREE}/include", str(TREE / f"{SCRIPT}.S"), str(path)]
    subprocess.run(words, check=True)
    path.with_name(f".{path.name}.cmd").write_text(f"savedcmd_{SCRIPT} := {shlex.join(words)}\n")
    return SCRIPT


def link(names: list[str]) -> bool:
    """vmlinux from its objects, unless it is there as it would be; False when it fails."""
    linker = " ".join(os.environ.get(name, "") for name in ("LD", "LDFLAGS_vmlinux"))
    words = [*shlex.split(linker), "-T", linker_script(), "-o", "vmlinux", *names]
    held = [hashlib.sha256((OUT / name).read_bytes()).hexdigest() for name in names]
    state, stamp = repr([words, held, (OUT / SCRIPT).read_text()]), OUT / "vmlinux.state"
    if (OUT / "vmlinux").is_file() and stamp.is_file() and stamp.read_text() == state:
        return True
    print("  LD      vmlinux", flush=True)
    (OUT / "vmlinux.a").unlink(missing_ok=True)
    subprocess.run(["ar", "cDPrST", "vmlinux.a", *names], cwd=OUT, check=True)
    stamp.unlink(missing_ok=True)
    done = subprocess.run(words, cwd=OUT, check=False)
    if done.returncode:
        return False
    said = subprocess.check_output([f"{CROSS}nm", OUT / "vmlinux"], text=True)
    (OUT / "System.map").write_text(said)
    stamp.write_text(state)
    return True


def build(goal: str) -> bool:
    """One goal that needs the compiler; False when it fails."""
    granted, _ = read(OUT / ".config")
    sync(granted)
    if goal in ("prepare", "modules_prepare"):
        return True
    if goal == "modules":
        (OUT / "modules.order").write_text("")
        (OUT / "Module.symvers").write_text("")
        return True
    if goal == "zImage" or goal.endswith(".dtb"):
        folder = f"arch/{ARCH}/boot/" + ("" if goal == "zImage" else "dts/")
        (OUT / folder / goal).parent.mkdir(parents=True, exist_ok=True)
        (OUT / folder / goal).write_text(f"{goal} of {(OUT / '.config').read_text()}")
        return goal != "zImage" or build("vmlinux")
    names = objects(granted) if goal == "vmlinux" else [goal]
    good = all(compile_one(name, granted) for name in names)
    return good and (goal != "vmlinux" or link(names))


def main() -> int:
    """All goals, in order, from the output folder as kbuild does."""
    OUT.mkdir(parents=True, exist_ok=True)
    os.chdir(OUT)
    for goal in sys.argv[3:]:
        if goal == "listnewconfig":
            continue
        if goal == "allnoconfig":
            write(grant(*read(Path(os.environ.get("KCONFIG_ALLCONFIG") or "none"))))
        elif goal in ("defconfig", "olddefconfig", "vexpress_defconfig"):
            write(grant(*read(OUT / ".config")) if goal[0] == "o" else grant({"TMPFS": "y"}, ""))
        elif goal.endswith("config"):
            print(f"make: *** No rule to make target '{goal}'.  Stop.", file=sys.stderr)
            return 2
        elif not build(goal):
            print(f"make: *** [Makefile:21: {goal}] Error 1", file=sys.stderr)
            return 2
    return 0


sys.exit(main())
