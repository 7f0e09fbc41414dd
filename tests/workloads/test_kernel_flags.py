# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of the kernel's compiler flags a user program is compiled by: recorded command lines."""

import pytest

from kdelta.workloads.kernel_flags import user_flags

# As kbuild of Debian's 6.1 and of a 6.12 with call padding writes them, shortened where nothing is
# decided.
OLD = (
    " gcc-12 -Wp,-MMD,/m/.aes.o.d -nostdinc -I/usr/src/include -include /k/kconfig.h -D__KERNEL__ "
    "-fmacro-prefix-map=/usr/src/= -Wall -Werror=return-type -fno-strict-aliasing -fshort-wchar "
    "-std=gnu11 -mno-sse -mno-avx -fcf-protection=none -m64 -mpreferred-stack-boundary=3 "
    "-mtune=generic -mno-red-zone -mcmodel=kernel -mindirect-branch=thunk-extern "
    "-mindirect-branch-register -mfunction-return=thunk-extern -mharden-sls=all -O2 "
    "--param=allow-store-data-races=0 -fstack-protector-strong -ftrivial-auto-var-init=zero -pg "
    "-mrecord-mcount -mfentry -DCC_USING_FENTRY -g -DMODULE -DKBUILD_BASENAME='\"aes\"' "
    "-c -o /m/aes.o /m/aes.c   ; ./tools/objtool/objtool --hacks=noinstr --mnop /m/aes.o"
)
OLD_KEPT = (
    "-fno-strict-aliasing -fshort-wchar -std=gnu11 -mno-sse -mno-avx -fcf-protection=none -m64 "
    "-mpreferred-stack-boundary=3 -mtune=generic -mno-red-zone -mharden-sls=all -O2 "
    "--param=allow-store-data-races=0 -fstack-protector-strong -ftrivial-auto-var-init=zero "
    "-pg -mfentry -mnop-mcount"
)


def test_what_shapes_the_code_is_kept_in_order() -> None:
    found = user_flags(OLD)
    assert found.compiler == ("gcc-12",)
    assert " ".join(found.kept) == OLD_KEPT
    assert found.left_out == (
        "-fmacro-prefix-map=/usr/src/=",
        "-mcmodel=kernel",
        "-mindirect-branch=thunk-extern",
        "-mindirect-branch-register",
        "-mfunction-return=thunk-extern",
    )


@pytest.mark.parametrize(
    ("flag", "kept"),
    [
        ("-Os", True),
        ("-O3", True),
        ("-falign-functions=64", True),
        ("-fpatchable-function-entry=16,16", True),
        ("-fno-omit-frame-pointer", True),
        ("-fzero-call-used-regs=used-gpr", True),
        ("-funsigned-char", True),
        ("-march=native", True),
        ("--target=x86_64-linux-gnu", True),
        ("-mstack-protector-guard-reg=gs", False),
        ("-mstack-protector-guard-symbol=__ref_stack_chk_guard", False),
        ("-fsanitize=kernel-address", False),
        ("-fno-sanitize=all", False),
        ("-fplugin=./scripts/gcc-plugins/x.so", False),
        ("-fplugin-arg-x-y", False),
        ("-fprofile-arcs", False),
        ("-flto=thin", False),
        ("-mretpoline-external-thunk", False),
        ("-finstrument-functions", False),
        ("-gdwarf-5", False),
        ("-Wframe-larger-than=2048", False),
        ("-DMODULE", False),
        ("-nostdinc", False),
    ],
)
def test_each_flag(flag: str, kept: bool) -> None:
    assert (flag in user_flags(f"gcc {flag} -c -o a.o a.c").kept) is kept


def test_words_that_belong_to_a_flag_are_no_flags() -> None:
    said = "clang -mllvm -fake-tail-calls -Xclang -mfoo -include -fbar -O2 -c -o -fbaz a.c"
    assert user_flags(said).kept == ("-O2",)


def test_no_tracer_no_nops() -> None:
    assert user_flags("gcc -O2 -c a.c").kept == ("-O2",)
    # clang has no such NOPs: the tracer's calls are left out.
    assert user_flags("clang-19 -O2 -pg -mfentry -c a.c").kept == ("-O2",)


def test_a_wrapper_is_no_part_of_the_compiler() -> None:
    assert user_flags("ccache gcc -O2 -c a.c").compiler == ("gcc",)


@pytest.mark.parametrize("command", ["", "-O2 -c a.c", "cat a.c"])
def test_no_compiler(command: str) -> None:
    with pytest.raises(ValueError, match="not a compiler"):
        user_flags(command)
