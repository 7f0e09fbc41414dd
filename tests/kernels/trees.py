# SPDX-License-Identifier: GPL-2.0-or-later
"""A folder that looks like a kernel tree, whose make takes milliseconds: fake_tree next to this.

Its kernel has a dozen objects, which real gcc compiles: init/head.S calls start_kernel (kernel/
core.c), which calls lock, list_add and clear_pages. Options: DEBUG_LIST and DEBUG_LOCK need
DEBUG_KERNEL; DEBUG_LOCK selects TRACE; WATCHDOG cannot be had together with TMPFS, which the lab
wants; OLD_DRIVER adds an object that nothing calls; SLOW one that takes a minute; OPTIMIZE_FOR_SIZE
and _SPEED are a choice. scripts/fake.py stands for kbuild: it knows allnoconfig, defconfig,
olddefconfig, vmlinux, modules, prepare and single objects, and leaves .cmd files as kbuild does.
"""

import re
import shutil
from pathlib import Path

from kdelta.host.command import log_to_stderr
from kdelta.kernels.kbuild.built import LOG, BuiltKernel, load_built
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.words import parse_kernel_words

FAKE_TREE = Path(__file__).parent / "fake_tree"


def fake_tree(folder: Path) -> Path:
    """A copy of the fake tree."""
    return Path(shutil.copytree(FAKE_TREE, folder / "linux"))


def made(tree: Path, *words: str, said: list[str] | None = None) -> Kernel | NoKernel:
    """What comes of a tree with changes; `said` gets what is talked of."""
    heard: list[str] = [] if said is None else said
    return obtain(parse_kernel_words([str(tree), *words])[0], heard.append)


def kernel(tree: Path, *words: str) -> tuple[Kernel, BuiltKernel]:
    """The kernel of a tree with changes, and its record."""
    found = made(tree, *words)
    assert isinstance(found, Kernel), found
    assert found.built is not None
    built = load_built(found.built)
    assert built is not None
    return found, built


def built(spec: str) -> tuple[Kernel, BuiltKernel]:
    """The kernel of a spec's text, and its record."""
    found = obtain(parse_kernel_spec(spec), log_to_stderr)
    assert isinstance(found, Kernel), found
    record = load_built(found.built or "")
    assert record is not None
    return found, record


def failure(tree: Path, *words: str) -> NoKernel:
    """Why a tree with changes gives no kernel."""
    found = made(tree, *words)
    assert isinstance(found, NoKernel), found
    return found


def compiled(built: BuiltKernel) -> list[str]:
    """The objects that were compiled for a kernel, as its log has them."""
    log = (built.path / LOG).read_text()
    return re.findall(r"^  (?:CC|AS)      (\S+)$", log, re.MULTILINE)


def patch(tree: Path, name: str, before: str, after: str) -> Path:
    """A patch file, next to the tree, that replaces a line of one of its files."""
    lines = (tree / name).read_text().splitlines()
    at = lines.index(before)
    context = lines[max(0, at - 2) : at], lines[at + 1 : at + 3]
    start, length = max(0, at - 2) + 1, len(context[0]) + len(context[1]) + 1
    body = [f" {line}" for line in context[0]]
    body += [f"-{before}", f"+{after}", *(f" {line}" for line in context[1])]
    path = tree.parent / f"{re.sub(r'[^a-z]', '-', name)}-{len(after)}.patch"
    head = [f"--- a/{name}", f"+++ b/{name}", f"@@ -{start},{length} +{start},{length} @@"]
    path.write_text("\n".join([*head, *body, ""]))
    return path
