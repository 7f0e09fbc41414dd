# SPDX-License-Identifier: GPL-2.0-or-later
"""Two examples of each command, and the kinds of kernel specs, which its help shows."""

from collections.abc import Mapping

_STABLE, _NEXT = "deb:linux-image-amd64", "deb:linux-image-6.12-amd64"

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "compare": (
        f"{_STABLE} {_NEXT} -o stat",
        "~/linux +my.config , +fix.patch , +CONFIG_HZ=1000",
    ),
    "gate": ("git:.@v6.12 . -o open-close", f"{_STABLE} +cmdline:psi=0 --margin 1"),
    "run": (f"{_STABLE} -- ls -l /usr", f"{_STABLE} --against ./old -- ./new input.txt"),
    "shell": (_STABLE, f"{_STABLE} -- uname -a"),
    "runs": ("", "-n 50"),
    "show": ("last", "last --console"),
    "profile": ("last --calls", f"{_STABLE} -o stat --export perf"),
    "diff": (f"{_STABLE} {_NEXT} -o stat", "~/linux +fix.patch --figure loads"),
    "report": ("--list", "last --output report.html"),
    "rm": ("3f2a", "3f2a 91bc"),
    "check": ("", "--repair"),
    "prune": ("--cache 10", "--older 90 --runs --dry-run"),
    "backup": ("/backup/kdelta", "./store"),
    "log": ("-o open-close", "6.12 --since 6.12.100"),
    "layout": (f"{_STABLE} -o stat", "~/linux +sections --cpu zen4 --layouts 500"),
    "place": (
        "~/linux +sections --output order.txt",
        "~/linux +sections --output order.txt --apply --weight stat=3",
    ),
    "crossing": ("~/linux -o getppid", "~/linux -- ./bench"),
    "conflicts": (
        f"{_STABLE} -o stat-same-file",
        f"{_STABLE} {_NEXT}",
    ),
    "ablate": (
        "~/linux --from old.config --to new.config",
        "~/linux --from old.config --to new.config --max-builds 10",
    ),
    "bisect": ("v6.12..v6.13 ~/linux +my.config", "HEAD~20..HEAD -o open-close --first"),
    "series": ("~/linux ./patches", "~/linux v2.mbox --views order,alone"),
    "clock": ("judge A B --margin 2", "floor -o stat --pairs 40"),
    "build": ("~/linux +defconfig +kvm_guest.config", "git:~/linux@v6.12 +my.config"),
    "kernels": ("", "--prune 20"),
    "cpus": ("", "zen4"),
    "schema": ("", "kdelta.compare/4"),
    "workloads": ("", "--help"),
    "doctor": ("", "--qemu host"),
    "pin": ("fetch --arch arm64", "pack --output pin.tar"),
    "completion": ("bash", "fish"),
}
"""By command: what follows its name."""

SPECS = """\b
Kernel specs:
  PATH, tree:PATH              a source tree as it is, or packed (.tar.xz)
  git:PATH@REV                 a commit, tag or branch of a git repository
  deb-src:PACKAGE[=VERSION]    a distribution's source: linux-source-6.12
  deb:PACKAGE[=VERSION]        a distribution's binary kernel, fetched by apt
  deb:PACKAGE:armhf            one for another architecture: armhf, arm64
  deb:PACKAGE@trixie           one of another release than this host's
  rpm:FILE[,FILE]              packages of Fedora, openSUSE, RHEL, or pkg:FILE
                               of Arch; or their addresses
  rpm:PACKAGE@REPOSITORY       one of a repository, or pkg:PACKAGE@DATABASE
  image:PATH[,modules=FOLDER]  a bzImage, a vmlinux with CONFIG_PVH=y, a
                               zImage for ARM, an Image for arm64 or RISC-V;
                               a folder or an archive that has one

\b
Changes on a source, in their order:
  +CONFIG_X=y  +'# CONFIG_X is not set'  options
  +base:my.config  +fragment.config      a whole config, a part of one
  +defconfig  +kvm_guest.config          what the tree's own make knows
  +fix.patch  +series.mbox               patches
  +KCFLAGS=-O3  +CC=clang  +LLVM=1       for make; without + for all kernels
  +order:FILE  +shuffle:SEED             functions in that or a random order,
  +align:64  +sections                   aligned; as without, to compare with
  +dshuffle:SEED                         variables in a random order
  +kernel-mode                           programs can run in ring 0 (x86-64)

\b
A lone + is the first kernel again: ~/linux +a.config + +fix.patch
"""


def examples_text(name: str) -> str:
    """Return a command's examples as its help ends with them."""
    if name not in EXAMPLES:
        return ""
    lines = (f"  kdelta {name} {words}".rstrip() for words in EXAMPLES[name])
    return "\b\nExamples:\n" + "".join(f"{line}\n" for line in lines) + "\n"
