# SPDX-License-Identifier: GPL-2.0-or-later
"""What timed guests need of a kernel is found in its config, before any guest boots."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from kdelta.kernels.arches import kernel_arch, kernel_arches
from kdelta.kernels.config.kconfig import render_config
from kdelta.kernels.config.lab_config import lab_options
from kdelta.kernels.model import Kernel
from kdelta.measures.clock.needs import must_be_timeable
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import parse_kernel_spec

ARCHES = tuple(arch.machine for arch in kernel_arches().values())
CONSOLES = {
    "x86_64": "CONFIG_SERIAL_8250_CONSOLE",
    "arm": "CONFIG_SERIAL_AMBA_PL011_CONSOLE",
    "arm64": "CONFIG_SERIAL_AMBA_PL011_CONSOLE",
    "riscv64": "CONFIG_SERIAL_8250_CONSOLE",
}
FREE = ("CONFIG_KALLSYMS", "CONFIG_SYSFS")


def kernel(
    folder: Path, arch: str, changed: Mapping[str, str | None], image_format: str = "bzImage"
) -> Kernel:
    """A kernel with what its guests need to boot, but for what is changed; None: without a line."""
    usual = {
        one.option: one.value
        for one in lab_options(kernel_arch(arch).folder)
        if one.group == "boot"
    }
    values = {**usual, **{f"CONFIG_{name}": value for name, value in changed.items()}}
    config = folder / "config"
    config.write_text(render_config({name: one for name, one in values.items() if one}))
    return Kernel("a" * 64, "mine", "/image", arch, "6.12.0", str(config), None, "", image_format)


@pytest.mark.parametrize("arch", ARCHES)
def test_kernel_with_what_guests_need_is_timed(arch: str, tmp_path: Path) -> None:
    must_be_timeable(kernel(tmp_path, arch, {}))


def test_kernel_without_a_known_config_is_not_refused() -> None:
    must_be_timeable(Kernel("a" * 64, "image:/vmlinuz", "/vmlinuz", "x86_64", "6.1.0-a"))


@pytest.mark.parametrize("value", ["n", "m", None])
@pytest.mark.parametrize("arch", ARCHES)
def test_each_option_is_named_with_how_to_build_with_it(
    arch: str, value: str | None, tmp_path: Path
) -> None:
    needed = {
        one.option: one.why
        for one in lab_options(kernel_arch(arch).folder)
        if one.group == "boot" and one.option not in FREE
    }
    assert CONSOLES[arch] in needed
    for option, why in needed.items():
        lacking = kernel(tmp_path, arch, {option.removeprefix("CONFIG_"): value})
        with pytest.raises(UserError) as raised:
            must_be_timeable(lacking)
        assert raised.value.message == (
            f"mine cannot be timed in a guest, as its config shows: {option} (not built in: {why})"
        )
        assert raised.value.hint == f"build it with: +{option}=y"


@pytest.mark.parametrize("arch", ARCHES)
def test_what_only_counting_needs_is_not_missed(arch: str, tmp_path: Path) -> None:
    without = {name.removeprefix("CONFIG_"): "n" for name in FREE}
    must_be_timeable(kernel(tmp_path, arch, without))


def test_vmlinux_needs_what_boots_it(tmp_path: Path) -> None:
    must_be_timeable(kernel(tmp_path, "x86_64", {"PVH": "y"}, "vmlinux"))
    with pytest.raises(UserError) as raised:
        must_be_timeable(kernel(tmp_path, "x86_64", {}, "vmlinux"))
    assert raised.value.hint == "build it with: +CONFIG_PVH=y"


def test_kernel_for_a_board_is_refused_on_that_board_alone(tmp_path: Path) -> None:
    other = kernel(tmp_path, "arm", {"ARCH_VEXPRESS": "n"})
    must_be_timeable(other, "cortex-a15")
    for cpu in ("", "cortex-a9"):
        with pytest.raises(UserError, match="CONFIG_ARCH_VEXPRESS"):
            must_be_timeable(other, cpu)


@pytest.mark.parametrize(
    ("arch", "name"),
    [("x86_64", "CMDLINE_OVERRIDE"), ("arm", "CMDLINE_FORCE"), ("arm64", "CMDLINE_FORCE")],
)
def test_kernel_that_ignores_its_command_line_is_refused(
    arch: str, name: str, tmp_path: Path
) -> None:
    must_be_timeable(kernel(tmp_path, arch, {name: "n"}))
    with pytest.raises(UserError, match=f"CONFIG_{name} \\(on: the kernel ignores") as raised:
        must_be_timeable(kernel(tmp_path, arch, {name: "y"}))
    assert raised.value.hint == f"build it with: +CONFIG_{name}=n"


def test_hint_is_changes_of_a_kernel_spec(tmp_path: Path) -> None:
    lacking = kernel(tmp_path, "x86_64", {"TTY": "n", "SERIAL_8250": "m", "CMDLINE_OVERRIDE": "y"})
    with pytest.raises(UserError) as raised:
        must_be_timeable(lacking)
    changes = raised.value.hint.removeprefix("build it with: ")
    assert changes == "+CONFIG_TTY=y +CONFIG_SERIAL_8250=y +CONFIG_CMDLINE_OVERRIDE=n"
    assert parse_kernel_spec(f"deb-src:linux-source-6.12 {changes}")


def test_config_that_is_gone_is_an_error_of_the_lab(tmp_path: Path) -> None:
    gone = kernel(tmp_path, "x86_64", {})
    (tmp_path / "config").unlink()
    with pytest.raises(LabError, match="reading"):
        must_be_timeable(gone)
