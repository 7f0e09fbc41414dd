# SPDX-License-Identifier: GPL-2.0-or-later
"""How modules that are not part of a kernel are built against it."""

from collections.abc import Iterator
from contextlib import contextmanager

from kdelta.host.command import Talk
from kdelta.kernels.build.built import load_built
from kdelta.kernels.build.workbench import workbench
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.headers import headers_build
from kdelta.spec.errors import UserError

ModuleCommand = tuple[list[str], dict[str, str]]
"""argv and environment; M=FOLDER modules go after argv."""


@contextmanager
def module_build(kernel: Kernel, talk: Talk) -> Iterator[ModuleCommand]:
    """The command that builds modules against that kernel, usable during the body.

    UserError for a kernel that came without what is needed (image: and kernels without modules).
    """
    if kernel.built is None:
        with headers_build(kernel, talk) as command:
            yield command
        return
    built = load_built(kernel.built)
    if built is None:
        raise UserError(f"{kernel.spec} is not in the cache any more", "build it again")
    config = (built.path / built.config).read_text()
    if "\nCONFIG_MODULES=y\n" not in config:
        raise UserError(f"{kernel.spec} takes no modules", "its config lacks CONFIG_MODULES=y")
    with workbench(built, talk) as bench:
        yield bench.module_command(config, built.path / "Module.symvers")
