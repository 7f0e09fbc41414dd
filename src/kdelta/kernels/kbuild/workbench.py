# SPDX-License-Identifier: GPL-2.0-or-later
"""A built kernel's tree once more: what it makes of other configs, some objects, other modules."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kdelta.host.command import Log
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, make_folder
from kdelta.host.machine import cores
from kdelta.kernels.config.conf import fast_olddefconfig
from kdelta.kernels.config.kconfig import Normalize
from kdelta.kernels.config.kconfig_files import Kconfig, read_kconfig
from kdelta.kernels.config.mentions import Mentions, find_mentions
from kdelta.kernels.kbuild.build import held_source
from kdelta.kernels.kbuild.built import BuiltKernel, load_built
from kdelta.kernels.kbuild.kbuild import Kbuild
from kdelta.kernels.kbuild.toolchain import build_environment, toolchain
from kdelta.kernels.model import Kernel
from kdelta.kernels.objects.digest import Digest, ObjectDigest, digest_of
from kdelta.kernels.objects.lines import without_lines
from kdelta.kernels.objects.objects import read_object
from kdelta.kernels.packages.headers import headers_command
from kdelta.kernels.sources.source import Source, checked_out
from kdelta.spec.errors import LabError, UserError

ModuleCommand = tuple[list[str], dict[str, str]]
"""argv and environment; M=FOLDER modules go after argv."""

CONFIGS = "configs-"
"""Output folders in which configs are only asked for: nothing is compiled there."""


_MISSED = re.compile(r": '?([\w./+-]+)'?(?:: No such file or directory| file not found)")


class Workbench:
    """A tree that is held and checked out. Its output folder is that of all kernels of the tree."""

    def __init__(self, kbuild: Kbuild, log: Log) -> None:
        self._kbuild = kbuild
        self._log = log

    @property
    def tree(self) -> Path:
        return self._kbuild.tree

    @property
    def has_build(self) -> bool:
        """Whether the output folder still has a finished build, which single objects need."""
        return any((self._kbuild.out / name).is_file() for name in ("vmlinux.a", "built-in.a"))

    def normalize(self) -> Normalize:
        """What the tree makes of configs, asked where nothing is built."""
        place = Kbuild(self._kbuild.root, self.tree, self._kbuild.toolchain, 1, purpose=CONFIGS)
        make_folder(place.out)
        return fast_olddefconfig(place.out, place.configure, self._log)

    def kconfig(self) -> Kconfig:
        return read_kconfig(self.tree, self._kbuild.toolchain.folder)

    def mentions(self) -> Mentions:
        """Where the tree's build files mention options."""
        return find_mentions(self.tree, self._kbuild.toolchain.folder)

    def use(self, config: str) -> None:
        """Makes this the output folder's .config."""
        file = self._kbuild.out / ".config"
        with lab_errors("writing", file):
            file.write_text(config)
        done = self._kbuild.configure(["olddefconfig"])
        done.or_raise("a config that was granted is not any more")

    def compile(self, config: str, targets: Sequence[str]) -> Digest | str:
        """Some objects and generated files as that config has them; or what went wrong first."""
        self.use(config)
        log_file = cache_dir("logs") / "recompile.log"
        wrong = self._kbuild.make(targets, log_file, self._log)
        if wrong and (folders := _makers_of(wrong, self.tree)):
            self._kbuild.make(folders, log_file, self._log)
            wrong = self._kbuild.make(targets, log_file, self._log)
        return wrong or digest_of(self._kbuild.out, targets)

    def compile_at(
        self, source: Source, config: str, targets: Sequence[str], *, lines: bool = True
    ) -> Digest | str:
        """The same of another state of the tree, whose files stand there from then on; without
        `lines`, those that tables of WARN and BUG have are left out.
        """
        checked_out(source, self._log)
        compiled = self.compile(config, targets)
        if lines or isinstance(compiled, str):
            return compiled
        with lab_errors("reading", self._kbuild.out):
            objects = {path: self._without_lines(one) for path, one in compiled.objects.items()}
        return Digest(objects, compiled.generated)

    def _without_lines(self, thing: ObjectDigest) -> ObjectDigest:
        found = read_object(without_lines((self._kbuild.out / thing.path).read_bytes())) or thing
        return msgspec.structs.replace(
            thing, functions=found.functions, data=found.data, collected=found.collected
        )

    def module_command(self, config: str, symvers: Path) -> ModuleCommand:
        """Return what builds modules of other folders against the kernel of that config.
        `symvers`: that kernel's Module.symvers.
        """
        self.use(config)
        log_file = cache_dir("logs") / "modules-prepare.log"
        if wrong := self._kbuild.make(["modules_prepare"], log_file, self._log):
            raise LabError(
                f"preparing for modules failed: {wrong}", f"all it said is in {log_file}"
            )
        if symvers.is_file():
            with lab_errors("copying", symvers):
                shutil.copyfile(symvers, self._kbuild.out / "Module.symvers")
        argv = ["make", "-C", str(self._kbuild.out), *self._kbuild.toolchain.words(self.tree)]
        return argv, build_environment(self._kbuild.root)


def _makers_of(wrong: str, tree: Path) -> list[str]:
    """The targets that make a file which a compiler missed: a build of all has it made in another
    folder before, as arch/x86/lib makes inat-tables.c for arch/x86/boot/compressed.
    """
    if (found := _MISSED.search(wrong)) is None:
        return []
    rule = re.compile(rf"\$\(obj\)/{re.escape(Path(found[1]).name)}\b")
    files = (path for name in ("Makefile", "Kbuild") for path in tree.rglob(name))
    makers = [path.parent for path in files if rule.search(path.read_text(errors="replace"))]
    return sorted({f"{folder.relative_to(tree)}/" for folder in makers if folder != tree})


@contextmanager
def workbench(built: BuiltKernel, log: Log) -> Iterator[Workbench]:
    """The tree of a built kernel, held for the body: no other kernel of it is built meanwhile."""
    source = Source(folder=Path(built.folder), tree=built.tree, name=built.source)
    with held_source(source, log):
        tools = toolchain(built.variables)
        kbuild = Kbuild(source.folder, checked_out(source, log), tools, cores())
        make_folder(kbuild.out)
        yield Workbench(kbuild, log)


@contextmanager
def module_build(kernel: Kernel, log: Log) -> Iterator[ModuleCommand]:
    """The command that builds modules against that kernel, usable during the body.

    UserError for a kernel that came without what is needed (image: and kernels without modules).
    """
    if kernel.built is None:
        yield headers_command(kernel, log)
        return
    if (built := load_built(kernel.built)) is None:
        raise UserError(f"{kernel.spec} is not in the cache any more", "build it again")
    config = (built.path / built.config).read_text()
    if "\nCONFIG_MODULES=y\n" not in config:
        raise UserError(f"{kernel.spec} takes no modules", "its config lacks CONFIG_MODULES=y")
    with workbench(built, log) as bench:
        yield bench.module_command(config, built.path / "Module.symvers")
