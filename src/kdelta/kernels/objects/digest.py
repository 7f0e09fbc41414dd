# SPDX-License-Identifier: GPL-2.0-or-later
"""What a finished build's objects hold and which options each depends on: enough to tell what an
option can reach without building again.
"""

import hashlib
import os
import re
from collections.abc import Collection
from pathlib import Path

import msgspec

from kdelta.host.files import lab_errors
from kdelta.kernels.objects.cmdfiles import CmdFile, parse_cmd, read_cmd, thin_members
from kdelta.kernels.objects.objects import CodePiece, ObjectContent, read_object
from kdelta.spec.errors import LabError

ANY_OPTION = "CONFIG_*"
"""Stands among the options of a generated file of which is not known what it depends on."""

OPAQUE = "(whole file)"
"""The only section of an object that cannot be read."""

LINKER_SCRIPTS = ("/vmlinux.lds", "/module.lds")
"""How the paths of generated files end on which everything depends."""

_RELATIVE = re.compile(rb"^ +([^/.$\s][^\s:]*) ?\\?$", re.MULTILINE)
_INCBIN = re.compile(rb"""\.incbin\s+\\?"([^"\\]+)""")
_WRAPPER = re.compile(rb"\s*(?:#include <asm-generic/[\w./-]+>\s*)+")

_FILECHK: dict[str, tuple[str, ...]] = {
    "include/generated/autoconf.h": (),  # fixdep puts the options in its place
    "include/generated/timeconst.h": ("CONFIG_HZ",),
    "include/generated/utsrelease.h": ("CONFIG_LOCALVERSION", "CONFIG_LOCALVERSION_AUTO"),
    "include/generated/utsversion.h": ("CONFIG_SMP", "CONFIG_PREEMPT_BUILD", "CONFIG_PREEMPT_RT",
                                       "CONFIG_PREEMPT_DYNAMIC"),
    "init/utsversion-tmp.h": ("CONFIG_SMP", "CONFIG_PREEMPT_BUILD", "CONFIG_PREEMPT_RT",
                              "CONFIG_PREEMPT_DYNAMIC"),
    "include/generated/compile.h": ("CONFIG_CC_VERSION_TEXT",),
    "include/generated/package.h": (),
    "include/generated/uapi/linux/version.h": (),
    "include/generated/rustc_cfg": (),
}  # fmt: skip
"""Headers that are made without a .cmd file: top-level Kbuild, Makefile, init/Makefile, 6.12."""

_MADE_FROM = (
    (re.compile(r"include/generated/bounds\.h"), "kernel/bounds.s"),
    (re.compile(r"include/generated/asm-offsets\.h"), "arch/{arch}/kernel/asm-offsets.s"),
    (re.compile(r"include/generated/rq-offsets\.h"), "kernel/sched/rq-offsets.s"),
)
"""Headers that are made from an assembler file that has a .cmd file."""

_LIBRARIES = ("lib/lib.a", "arch/*/lib/lib.a")

_UNREAD = ("kernel/config_data.gz", "kernel/kheaders_data.tar.xz")
"""Carried along for user programs; no kernel code looks into it."""

_last_read: dict[bytes, ObjectContent | None] = {}
"""What the objects of the last whole digest hold, by the SHA-256 of the files: the next commit
changes few of them.
"""


class ObjectDigest(msgspec.Struct, frozen=True):
    """One object of vmlinux or of a module.

    `path` is relative to the output folder and names its make target; `source` is relative to the
    source tree, or to the output folder where it is generated. `options` are the CONFIG_ options
    that it was compiled with a look at, those of the files it is made from included (not those of
    generated headers: `generated` names these). `module` is "" for vmlinux. `is_opaque`: not an
    object that can be read. `alignments`: by section with code, what its address is a multiple of.
    """

    path: str
    source: str
    module: str
    options: frozenset[str]
    generated: frozenset[str]
    is_assembler: bool
    is_opaque: bool
    functions: dict[str, CodePiece]
    data: dict[str, CodePiece]
    collected: dict[str, CodePiece]
    alignments: dict[str, int] = {}


class GeneratedFile(msgspec.Struct, frozen=True):
    """A header, linker script or the like that the build made: the SHA-256 of its text, the options
    that its making looked at, and the make target that makes it.
    """

    sha256: str
    options: frozenset[str]
    target: str


class Digest(msgspec.Struct, frozen=True):
    """All objects by path, and the generated files that they include by path.

    Linker scripts are among the generated files; everything depends on them.
    """

    objects: dict[str, ObjectDigest]
    generated: dict[str, GeneratedFile]


def digest_of(out: Path, only: Collection[str] | None = None) -> Digest:
    """Return the digest of a finished build in kbuild's output folder.

    only: the objects to read, by path, linked or just compiled; the generated files that they use
    are read anyway. LabError
    when the folder holds no finished build or cannot be read.
    """
    out = out.resolve()
    builds = _Build(out)
    found = _objects(out)
    if only is not None:
        wanted = set(only)
        new = {path: "" for path in wanted - found.keys() if (out / path).is_file()}
        found = {path: module for path, module in found.items() if path in wanted} | new
    objects = {path: builds.object_digest(path, module) for path, module in sorted(found.items())}
    scripts = [*out.glob("arch/*/kernel/vmlinux.lds")]
    if any(found.values()):
        scripts += out.glob("scripts/module.lds")
    for script in sorted(scripts):
        builds.note_generated(str(script.relative_to(out)))
    if only is None:
        _last_read.clear()
        _last_read.update(builds.read)
    return Digest(objects, {path: file for path, file in sorted(builds.generated.items()) if file})


def _objects(out: Path) -> dict[str, str]:
    """The objects that are linked: path -> module, "" for vmlinux."""
    whole = out / "vmlinux.a"
    if whole.is_file():
        # Without modules the libraries' objects are linked only where something needs them.
        archives = [whole, *(path for name in _LIBRARIES for path in sorted(out.glob(name)))]
    else:
        archives = [*out.rglob("built-in.a"), *out.rglob("lib.a")]
    found: dict[str, str] = {}
    for archive in archives:
        members = thin_members(archive)
        if members is None:
            raise LabError(
                f"{archive} is no thin archive", "only kernels since 4.20 are understood"
            )
        for member in members:
            path = os.path.normpath(archive.parent / member)
            if path.endswith(".o") and Path(path).is_file():
                found[os.path.relpath(path, out)] = ""
    if not found:
        raise LabError(f"{out} holds no finished build of a kernel", "build it first")
    stamp = "init/version-timestamp.o"
    if (out / stamp).is_file():
        found[stamp] = ""
    return found | _module_objects(out)


def _module_objects(out: Path) -> dict[str, str]:
    order = out / "modules.order"
    found: dict[str, str] = {}
    if not order.is_file():
        return found
    with lab_errors("reading", out):
        for line in order.read_text().splitlines():
            parts = (out / line).with_suffix(".mod")
            if parts.is_file():
                name = parts.stem.replace("-", "_")
                found.update(dict.fromkeys(parts.read_text().split(), name))
    return {path: name for path, name in found.items() if (out / path).is_file()}


def _is_made(file: str) -> bool:
    return "/generated/" in file


class _Build:
    """What is known of a build's files, each looked at once."""

    def __init__(self, out: Path) -> None:
        self.out = out
        link = out / "source"
        self.tree = link.resolve() if link.is_dir() else out
        self.generated: dict[str, GeneratedFile | None] = {}
        self.read: dict[bytes, ObjectContent | None] = {}
        self._closures: dict[str, frozenset[str]] = {}

    def object_digest(self, path: str, module: str) -> ObjectDigest:
        cmd = read_cmd(self.out / path) or parse_cmd(b"")
        with lab_errors("reading", self.out / path):
            content = self._content((self.out / path).read_bytes())
        source = self._relative(cmd.source)
        used = {file for file in self._used(cmd, source) if self.note_generated(file) is not None}
        options = cmd.options
        if not cmd.source:
            options = self._closure(path)
        held = content or self._opaque(path)
        return ObjectDigest(
            path=path,
            source=source,
            module=module,
            options=options,
            generated=frozenset(used),
            is_assembler=source.endswith((".S", ".s")),
            is_opaque=content is None,
            functions=held.functions,
            data=held.data,
            collected=held.collected,
            alignments=held.alignments,
        )

    def _content(self, file: bytes) -> ObjectContent | None:
        key = hashlib.sha256(file).digest()
        if key not in self.read:
            self.read[key] = _last_read[key] if key in _last_read else read_object(file)
        return self.read[key]

    def _opaque(self, path: str) -> ObjectContent:
        with lab_errors("reading", self.out / path):
            whole = (self.out / path).read_bytes()
        hashed = int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "little")
        return ObjectContent({}, {}, {OPAQUE: CodePiece(hashed, len(whole), OPAQUE, ())})

    def _relative(self, source: str) -> str:
        """A source's path below the tree or the output folder."""
        path = os.path.normpath(self.out / source) if source else ""
        for folder in (self.tree, self.out):
            path = path.removeprefix(f"{folder}/")
        return path

    def _used(self, cmd: CmdFile, source: str) -> set[str]:
        """The generated files that an object was made from."""
        files = {
            file for file in cmd.made_files(_RELATIVE) if self.out != self.tree or _is_made(file)
        }
        if source and not (self.tree / source).is_file():
            files.add(source)
        for folder in (self.tree, self.out):
            path = folder / source
            if source.endswith((".S", ".c")) and path.is_file():
                with lab_errors("reading", path):
                    files.update(found.decode() for found in _INCBIN.findall(path.read_bytes()))
                break
        return {file for file in files if file not in _UNREAD and (self.out / file).is_file()}

    def note_generated(self, file: str) -> GeneratedFile | None:
        """Remembers a generated file; None for one that no option has a say in."""
        if file not in self.generated:
            path = self.out / file
            with lab_errors("reading", path):
                content = path.read_bytes()
            options, target = self._origin(file, content)
            sha256 = hashlib.sha256(content).hexdigest()
            self.generated[file] = GeneratedFile(sha256, options, target) if options else None
        return self.generated[file]

    def _origin(self, file: str, content: bytes) -> tuple[frozenset[str], str]:
        """The options that a generated file depends on, and the target that makes it."""
        if (cmd := read_cmd(self.out / file)) is not None:
            return self._closure(file) | cmd.options, file
        if file in _FILECHK:
            return frozenset(_FILECHK[file]), "prepare"
        for pattern, maker in _MADE_FROM:
            if pattern.fullmatch(file):
                folder, _, name = maker.format(arch="*").rpartition("/")
                folders = sorted(self.out.glob(folder))
                targets = [str((path / name).relative_to(self.out)) for path in folders]
                closures = [found for target in targets if (found := self._closure(target))]
                if closures:
                    return frozenset().union(*closures), "prepare"
        if _WRAPPER.fullmatch(content):
            return frozenset(), "prepare"
        return frozenset({ANY_OPTION}), "prepare"

    def _closure(self, target: str) -> frozenset[str]:
        """The options of a target and of all files of the build that it is made from."""
        if target in self._closures:
            return self._closures[target]
        self._closures[target] = frozenset()
        cmd = read_cmd(self.out / target)
        if cmd is None:
            return frozenset()
        options = set(cmd.options)
        words = re.split(r"[\s;|()'\"]+", cmd.command) if not cmd.source else []
        for word in {*words, *self._used(cmd, self._relative(cmd.source))} - {target, ""}:
            path = os.path.normpath(self.out / word).removeprefix(f"{self.out}/")
            if not path.startswith(("/", "..")) and (self.out / path).is_file():
                options |= self._closure(path)
        self._closures[target] = frozenset(options)
        return self._closures[target]
