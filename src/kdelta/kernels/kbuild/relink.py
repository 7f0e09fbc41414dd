# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels whose functions or variables lie in another order: compiled with a section for each,
linked by lld.

All that is linked from one tree, config and toolchain shares its objects, so a second order takes a
link only. The tree's linker script must take the sections, and its makefile the linker's options:
both files are changed in kdelta's own copy.
"""

import functools
import hashlib
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from kdelta.host.command import Log, run_program
from kdelta.host.files import expanded, lab_errors, make_folder
from kdelta.kernels.kbuild.linker_script import (
    ARCH_SCRIPTS,
    SCRIPT,
    with_data_sections,
    with_function_sections,
)
from kdelta.kernels.kbuild.order_file import read_order
from kdelta.kernels.kbuild.toolchain import takes, toolchain
from kdelta.kernels.objects.elf import read_elf
from kdelta.kernels.sources.source import Source, source_file, with_files
from kdelta.spec.change import (
    AlignChange,
    Change,
    DataShuffleChange,
    OrderChange,
    RelinkChange,
    ShuffleChange,
)
from kdelta.spec.errors import LabError, UserError

LINKER = "ld.lld"
FLAGS = "KDELTA_LDFLAGS"
"""The variable of make that the changed makefile adds to the linker's options."""

_ADDED = f"\n# Added by kdelta.\nLDFLAGS_vmlinux += $({FLAGS})\n"
_COMPILED = "CFLAGS_KERNEL"
"""Flags for what is built in: modules stay as they are."""

# Input sections whose order is drawn: functions and assembler files (.text). Thunks (.text..NAME)
# are each the only one that their description in the linker script takes.
_SHUFFLED = ".text*"
# Variables, those of each CPU by object, since the kernel names their sections.
_SHUFFLED_DATA = (".data*", ".bss*")


class Relink(msgspec.Struct, frozen=True):
    """What is asked of a link. `order`: functions that come first, in that order; `seed`: the
    others in random order; `align`: functions at multiples of that many bytes; `data_seed`:
    variables in random order. None of them: the order in which the kernel's objects are linked.
    """

    order: tuple[str, ...] = ()
    seed: int | None = None
    align: int | None = None
    data_seed: int | None = None

    def facts(self) -> dict[str, object]:
        """Return it as what keys a kernel."""
        found: dict[str, object] = msgspec.to_builtins(self)
        if self.data_seed is None:
            del found["data_seed"]
        return found


def relink_of(changes: Iterable[Change]) -> Relink | None:
    """Return what the changes ask of the link, the last of each kind; None if they ask nothing.

    UserError for an ordering file that cannot be read.
    """
    asked = [change for change in changes if isinstance(change, RelinkChange)]
    found = Relink()
    for change in asked:
        if isinstance(change, OrderChange):
            found = msgspec.structs.replace(found, order=read_order(expanded(change.path)))
        elif isinstance(change, ShuffleChange):
            found = msgspec.structs.replace(found, seed=change.seed)
        elif isinstance(change, DataShuffleChange):
            found = msgspec.structs.replace(found, data_seed=change.seed)
        elif isinstance(change, AlignChange):
            found = msgspec.structs.replace(found, align=change.bytes)
    return found if asked else None


def relinking_variables(variables: Mapping[str, str], relink: Relink) -> dict[str, str]:
    """Return the variables of make with which a kernel for that link is compiled and linked.

    UserError for a linker of the user's that is not lld.
    """
    values = dict(variables)
    named = values.get("LD", "")
    if named and "lld" not in Path(shlex.split(named)[0]).name:
        raise UserError(
            f"a kernel is relinked by {LINKER}, and LD={named} was given",
            f"leave LD= out, or name a version of it: LD={LINKER}-19",
        )
    if not named and not values.get("LLVM"):
        values["LD"] = LINKER
    flags = [values.get(_COMPILED, ""), "-ffunction-sections"]
    if relink.align:
        # gcc takes the first from version 14 on; it holds for cold functions too.
        least = f"-fmin-function-alignment={relink.align}"
        compiler = toolchain(values).compiler
        flags.append(least if takes(*compiler, least) else f"-falign-functions={relink.align}")
    if relink.data_seed is not None:
        flags.append("-fdata-sections")
    values[_COMPILED] = " ".join(flags).strip()
    return values


def relinkable(source: Source, arch: str, relink: Relink, log: Log) -> Source | str:
    """Return the source with a linker script for sections of each function, and of each variable
    where these are to move, and with a makefile that passes on `FLAGS`; or why there is none.
    `arch` is the folder below arch/.
    """
    makefile = f"arch/{arch}/Makefile"
    arch_scripts = [source_file(source, one.format(arch=arch)) or "" for one in ARCH_SCRIPTS]
    script, rules = source_file(source, SCRIPT), source_file(source, makefile)
    for path, text in ((SCRIPT, script), (makefile, rules)):
        if text is None:
            return f"its functions cannot be moved: the tree has no {path}"
    if (changed := with_function_sections(script or "", arch_scripts)) is None:
        return (
            "its functions cannot be moved: the macros TEXT_TEXT and TEXT_MAIN are not in the "
            f"tree's {SCRIPT} (kernels have them since 4.14)"
        )
    if relink.data_seed is not None and not (
        changed := with_data_sections(changed, arch_scripts) or ""
    ):
        return (
            "its variables cannot be moved: the macros DATA_MAIN and BSS_MAIN are not in the "
            f"tree's {SCRIPT} (kernels have them since 4.14)"
        )
    return with_files(source, {SCRIPT: changed, makefile: f"{rules}{_ADDED}"}, log)


@functools.cache
def orders_in_the_middle(compiler: tuple[str, ...], linker: str) -> bool:
    """Whether the linker puts functions that are ordered in the middle of the others, and not
    before them, as some versions of lld do where branches do not reach everywhere.

    It is seen from a link of four functions. LabError when they cannot be compiled or linked.
    """
    code = "".join(f'.section .text.{name},"ax"\n{name}: .long 0\n' for name in "abcd")
    with tempfile.TemporaryDirectory(prefix="kdelta-") as name, lab_errors("writing", Path(name)):
        folder = Path(name)
        (folder / "four.s").write_text(code)
        (folder / "order").write_text("d\n")
        # ccache has nothing to say here.
        words = compiler[1:] if compiler[0] == "ccache" else compiler
        option = f"--symbol-ordering-file={folder / 'order'}"
        steps: tuple[list[str | Path], ...] = (
            [*words, "-c", "-o", folder / "four.o", folder / "four.s"],
            [*shlex.split(linker), "-e", "0", option, "-o", folder / "four", folder / "four.o"],
        )
        for argv in steps:
            run_program(argv).or_raise("a link that is only tried failed")
        elf = read_elf(folder / "four")
    if elf is None:
        raise LabError(f"{linker} links for an architecture that is not known")
    at = dict(zip(elf.symbols.names, elf.symbols.value.tolist(), strict=True))
    return bool(at["a"] < at["d"] < at["c"])


def link_words(relink: Relink, out: Path) -> list[str]:
    """Return the word for make that says in which order to link; writes the ordering file into
    `out`.
    """
    flags = []
    if relink.order:
        text = "".join(f"{name}\n" for name in relink.order)
        # The name says to make whether the order is another one.
        name = f"kdelta-order-{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"
        with lab_errors("writing", make_folder(out) / name):
            (out / name).write_text(text)
        # Names that there are no functions of are derived from the result; as warnings they can end
        # a build (CONFIG_WERROR).
        flags += [f"--symbol-ordering-file={out / name}", "--no-warn-symbol-ordering"]
    if relink.seed is not None:
        flags.append(f"--shuffle-sections={_SHUFFLED}={relink.seed}")
    if relink.data_seed is not None:
        flags += [f"--shuffle-sections={one}={relink.data_seed}" for one in _SHUFFLED_DATA]
    return [f"{FLAGS}={' '.join(flags)}"]
