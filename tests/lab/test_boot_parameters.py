# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot parameters as a change: how they reach a guest, and whether the kernel took them."""

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from kdelta.host.target import targets
from kdelta.kernels.model import Kernel, booted_with
from kdelta.kernels.packages.cached import CachedKernel
from kdelta.lab.explain import advice, must_be_taken, must_fit_in_command_line, not_reported
from kdelta.lab.progress import Silent
from kdelta.machines.arch import arch_machine
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.tcg import Guest
from kdelta.spec.errors import UserError
from kdelta.spec.identity import identity
from kdelta.spec.parameters import REFUSED, parameter
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store
from kdelta.studies.log.lineage import lineages
from kdelta.studies.log.steps import CachedKernels
from kdelta.studies.recorded.recorded import kernel_of

PLAIN = Kernel("a" * 64, "deb:linux-image-x=1", "/", "x86_64", "6.12.0", image_format="vmlinux")
WORDS = ("audit=0", "nosmt", 'dyndbg="file a.c +p"')
SPEC = "deb:linux-image-x=1 '+cmdline:audit=0 nosmt dyndbg=\"file a.c +p\"'"
BOOTED = booted_with(PLAIN, WORDS, SPEC)
COMMAND_LINE = f"console=ttyS0 panic=-1 nokaslr {' '.join(WORDS)}"


def sent(
    arguments: str = "/init", environment: str = "", log: str = "", line: str = COMMAND_LINE
) -> dict[str, bytes]:
    """The messages of a guest that has booted."""
    return {
        "hello": f"release 6.12.0\ncmdline {line}\nquiet yes\n".encode(),
        "arguments": b"".join(word.encode() + b"\0" for word in arguments.split("|")),
        "environment": f"HOME=/\0TERM=linux\0{environment}\0".encode(),
        "kernel-log": log.encode(),
    }


@pytest.mark.parametrize("arch", targets())
def test_what_a_board_sets_itself_is_refused_as_a_change(arch: str) -> None:
    for board in arch_machine(arch).boards:
        for word in board.append.split():
            assert parameter(word)[0].replace("-", "_") in REFUSED


def test_parameters_of_the_kernel_come_after_all_others() -> None:
    guest = Guest("a", "/vmlinuz", "x86_64", "/initrd", "i", 0, 512, append="nopti")
    own = guest.command_line
    assert own.startswith("console=ttyS0 panic=-1 nokaslr")
    assert own.endswith(" nopti")
    with_them = msgspec.structs.replace(guest, parameters=("pti=on", "nosmt"))
    assert with_them.command_line == f"{own} pti=on nosmt"


@pytest.mark.parametrize(("arch", "most"), [("x86_64", 2047), ("arm", 1023)])
def test_a_command_line_longer_than_the_kernel_takes_is_refused(arch: str, most: int) -> None:
    kernel = Kernel("a" * 64, "image:x", "/vmlinuz", arch, "6.1.0", parameters=("a=" + "x" * 3000,))
    must_fit_in_command_line(kernel, "x" * most)
    why = f"has {most + 1} bytes, and kernels for {arch} take {most} at most"
    with pytest.raises(UserError, match=why) as caught:
        must_fit_in_command_line(kernel, "x" * (most + 1))
    assert "boot parameters are 3002 of these" in caught.value.hint


def test_what_the_kernel_took_is_fine() -> None:
    must_be_taken(BOOTED, sent())
    must_be_taken(PLAIN, sent("/init|bogus", line=""))
    must_be_taken(BOOTED, {})


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        (sent("/init|nokaslr|nosmt"), "6.12.0 does not know nosmt"),
        (sent(environment="audit=0"), "6.12.0 does not know audit=0"),
        (
            sent("/init|nosmt", "dyndbg=file a.c +p"),
            'does not know nosmt dyndbg="file a.c +p"',
        ),
        (
            sent(log="<4>[0.1] Malformed early option 'audit'\n"),
            "6.12.0 cannot read the value of audit=0",
        ),
        (
            sent(log="<3>Booting kernel: `file' invalid for parameter `dyndbg'\n"),
            "cannot read the value of dyndbg=",
        ),
        (sent(line="console=ttyS0"), "ignores its command line, or cuts it off"),
        (sent(line=COMMAND_LINE[:-3]), "ignores its command line, or cuts it off"),
    ],
)
def test_what_the_kernel_did_not_take_is_the_users_slip(
    messages: dict[str, bytes], why: str
) -> None:
    with pytest.raises(UserError) as caught:
        must_be_taken(BOOTED, messages)
    assert caught.value.message.startswith(f"cannot boot {SPEC}")
    assert why in caught.value.message


HOUSEKEEPING = (
    "<5>[    0.03] Kernel command line: nohz_full=1\n"
    "<4>[    0.03] Housekeeping: nohz_full= or isolcpus= incorrect CPU range\n"
    '<5>[    0.03] Unknown kernel command line parameters "nohz_full=1", will be passed on.\n'
    "<7>[    1.72]     nohz_full=1\n"
)


@pytest.mark.parametrize(
    ("log", "config", "why"),
    [
        (
            HOUSEKEEPING,
            "",
            "6.12.0 refuses nohz_full=1: it logs 'Housekeeping: nohz_full= or isolcpus= incorrect ",
        ),
        (
            "",
            "CONFIG_NO_HZ_FULL=y\nCONFIG_NO_HZ=y\n",
            "6.12.0 refuses nohz_full=1: its config has CONFIG_NO_HZ_FULL=y; the guest's last",
        ),
        ("", "# CONFIG_NO_HZ_FULL is not set\n", "6.12.0 does not know nohz_full=1, or refuses"),
    ],
)
def test_a_parameter_that_log_or_config_knows_is_refused_and_not_unknown(
    tmp_path: Path, log: str, config: str, why: str
) -> None:
    (tmp_path / "config").write_text(config)
    kernel = msgspec.structs.replace(PLAIN, config=str(tmp_path / "config"))
    booted = booted_with(kernel, ("nohz_full=1",), "s")
    messages = sent(environment="nohz_full=1", log=log, line="nohz_full=1")
    messages["cpuinfo"] = b"processor\t: 0\nflags : fpu\n"
    with pytest.raises(UserError) as caught:
        must_be_taken(booted, messages)
    assert f"as asked: {why}" in caught.value.message
    assert ("the guest's last CPU is number 0" in caught.value.message) is ("refuses n" in why)
    assert caught.value.hint.startswith("take --smp 2" if "refuses n" in why else "Documentation")
    messages["cpuinfo"] += b"\nprocessor\t: 1\nflags : fpu\n"
    with pytest.raises(UserError) as caught:
        must_be_taken(booted, messages)
    assert "last CPU" not in caught.value.message


def test_what_the_boot_stage_reads_is_warned_of_and_no_error(tmp_path: Path) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(b"HdrS\0earlyprintk\0no5lvl\0\x28\xb5\x2f\xfd")
    kernel = msgspec.structs.replace(PLAIN, image=str(image), image_format="bzImage")
    messages = sent("/init|no5lvl", line="no5lvl")
    booted = booted_with(kernel, ("no5lvl",), "s")
    must_be_taken(booted, messages)
    (warning,) = not_reported(booted, messages)
    assert warning.startswith("no5lvl may be without effect on 6.12.0: ")
    for other in (
        booted_with(kernel, ("no5lv",), "s"),
        msgspec.structs.replace(booted, image_format="vmlinux"),
    ):
        name = other.parameters[0]
        with pytest.raises(UserError, match=f"does not know {name}, or refuses"):
            must_be_taken(other, sent(f"/init|{name}", line=name))


def test_what_kdelta_sets_itself_is_not_blamed() -> None:
    own = sent("/init|nokaslr", "noreplace=1", "Malformed early option 'tsc'\n")
    must_be_taken(BOOTED, own)


def test_what_kernels_do_not_report_is_warned_of() -> None:
    assert not_reported(BOOTED, sent()) == ()
    (warning,) = not_reported(booted_with(PLAIN, ("nosmt", "cgroup.memory=nokmem"), "s"), sent())
    assert warning.startswith("cgroup.memory=nokmem may be without effect on 6.12.0: ")


def test_what_x86_looks_for_itself_is_warned_of_if_reported_as_unknown() -> None:
    words = ("spectre_v2=off", "nosmt")
    booted = booted_with(PLAIN, words, "s")
    line = " ".join(words)
    assert not_reported(booted, sent(line=line)) == ()
    unknown = sent(environment="spectre_v2=off", line=line)
    must_be_taken(booted, unknown)
    (warning,) = not_reported(booted, unknown)
    assert warning.startswith("spectre_v2=off may be without effect on 6.12.0: the kernel reports")
    both = sent("/init|nosmt", "spectre_v2=off", line=line)
    with pytest.raises(UserError, match=r"does not know nosmt, or"):
        must_be_taken(booted, both)
    arm = msgspec.structs.replace(booted, arch="arm")
    with pytest.raises(UserError, match=r"does not know spectre_v2=off, or"):
        must_be_taken(arm, unknown)


def cached(folder: Path) -> CachedKernel:
    """A kernel of a package in the cache."""
    entry = CachedKernel(
        package="linux-image-x",
        version="1",
        identity="a" * 64,
        arch="x86_64",
        release="6.12.0",
        banner="",
        image="vmlinuz",
        image_sha256="",
        config=None,
        modules=None,
    )
    assert folder.is_dir()
    return entry


def ran(store: Store, kernel: Kernel) -> Run:
    new = NewRun(
        key=identity(kernel.spec),
        kernel_identity=kernel.identity,
        kernel_spec=kernel.spec,
        kernel_release=kernel.release,
        machine={},
        workload="syscalls",
        workload_identity="w",
        perturbation=0,
    )
    return store.finish_run(store.start_run(new), RunStatus.OK)


def test_the_kernel_of_a_run_is_found_with_its_parameters(
    own_data: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = cached(own_cache)
    for module in ("kdelta.studies.recorded.recorded", "kdelta.studies.log.steps"):
        monkeypatch.setattr(f"{module}.cached_kernels", lambda: [entry])
    with Store.open(own_data) as store:
        runs = [ran(store, kernel) for kernel in (PLAIN, BOOTED)]
        other = ran(store, booted_with(PLAIN, ("nosmt",), SPEC))
        found = [kernel_of(run, Silent().log) for run in runs]
        assert kernel_of(other, Silent().log) is None
    assert [(one.identity, one.spec, one.parameters) for one in found if one] == [
        (PLAIN.identity, PLAIN.spec, ()),
        (BOOTED.identity, SPEC, WORDS),
    ]
    kernels = CachedKernels()
    assert [kernels.find(one) for one in lineages(runs)] == found
    assert kernels.find(lineages([other])[0]) is None


def test_boot_that_failed_names_what_the_kernel_was_compiled_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = SimpleNamespace(variables={"KCFLAGS": "-O2 -march=x86-64-v3", "LLVM": "1"})
    monkeypatch.setattr("kdelta.lab.explain.load_built", lambda _: built)
    kernel = Kernel("a", "tree:/linux", "/bzImage", "x86_64", "6.12", built="b")
    outcome = GuestOutcome(RunStatus.BOOT_FAILED, "hang: nothing", "", 600.0, {})
    guest = Guest("a", "/bzImage", "x86_64", "/initrd", "i", 0, 512, cpu="EPYC")
    said = advice(outcome, kernel, {}, guest)
    assert "compiled with -march=x86-64-v3, and the guest's CPU, EPYC, may lack" in said
    assert "--qemu-cpu Haswell-noTSX" in said
    built.variables = {"KCFLAGS": "-O2"}
    assert advice(outcome, kernel, {}, guest) == ""
