# SPDX-License-Identifier: GPL-2.0-or-later
"""The words of a command line -> kernel specs: what + and NAME=VALUE words belong to."""

import itertools
from collections.abc import Sequence

import msgspec

from kdelta.spec.change import (
    Change,
    RelinkChange,
    SectionsChange,
    VariableChange,
    parse_change,
    parse_variable,
)
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import (
    BuiltSpec,
    KernelSpec,
    parse_kernel_spec,
    with_changes,
    without_changes,
)

SEPARATOR = ","
"""Stands between the changes of variants."""


def parse_kernel_words(words: Sequence[str]) -> tuple[KernelSpec, ...]:
    """The kernels that the words of a command line name, in order; UserError for a slip.

    A word is a kernel; the +words after it are its changes. A lone + starts another kernel: the
    first one as it stands, changed by the +words that follow. NAME=VALUE words (ARCH=, LLVM=, CC=)
    hold for all kernels that are built; a kernel's own come after them, so they win.
    """
    kernels, variables = _parse(words)
    return tuple(_with_variables(kernel, variables) for kernel in kernels)


def with_change(words: Sequence[str], change: str) -> list[str]:
    """The words of a command line with another change after those of each kernel that has any, but
    for boot parameters.
    """
    found: list[str] = []
    for is_change, group in itertools.groupby(words, lambda word: word[:1] == "+" != word):
        found += (some := list(group))
        if is_change and any(not word.startswith("+cmdline") for word in some):
            found.append(change)
    return found


def compared_words(words: Sequence[str]) -> tuple[KernelSpec, ...]:
    """The kernels to compare. A single one that has changes stands for two: without, and with.

    What is relinked is compared with the same kernel, +sections: with all else that changes it, and
    linked in the usual order. Changes with a comma between them are variants: the kernel without
    any is compared with each.
    """
    has_variants = SEPARATOR in words
    kernels, variables = _parse(_variants(words) if has_variants else words)
    if has_variants and kernels[0] == without_changes(kernels[0]):
        bases = {_base_of(kernel, kernels[0]) for kernel in kernels[1:]}
        kernels[0] = bases.pop() if len(bases) == 1 else kernels[0]
    if len(kernels) == 1 and (plain := without_changes(kernels[0])) != kernels[0]:
        kernels.insert(0, _base_of(kernels[0], plain))
    return tuple(_with_variables(kernel, variables) for kernel in kernels)


def _variants(words: Sequence[str]) -> list[str]:
    """The same words without commas: the kernel, and a lone + before each variant's changes."""
    is_change = [word.startswith("+") or word == SEPARATOR for word in words]
    own = [word for word, change in zip(words, is_change, strict=True) if not change]
    variables = [word for word in own if _variable(word)]
    kernel, *changes = [word for word in words if word not in variables]
    if len(own) - len(variables) != 1 or kernel not in own or "+" in changes:
        raise UserError(
            "a comma stands between changes of one kernel",
            f"write KERNEL +a {SEPARATOR} +b; kernels of their own need no comma",
        )
    groups: list[list[str]] = [[]]
    for word in changes:
        if word == SEPARATOR:
            groups.append([])
        else:
            groups[-1].append(word)
    if not all(groups):
        raise UserError("a comma without a change on both sides", f"write KERNEL +a {SEPARATOR} +b")
    return [*variables, kernel, *(word for group in groups for word in ("+", *group))]


def _base_of(changed: KernelSpec, plain: KernelSpec) -> KernelSpec:
    if isinstance(changed, BuiltSpec):
        return plain
    relinks = [change for change in changed.changes if isinstance(change, RelinkChange)]
    if not relinks:
        return plain
    base = with_changes(plain, [change for change in changed.changes if change not in relinks])
    if all(isinstance(change, SectionsChange) for change in relinks):
        return base
    return with_changes(base, [SectionsChange()])


def _parse(words: Sequence[str]) -> tuple[list[KernelSpec], tuple[Change, ...]]:
    kernels: list[KernelSpec] = []
    variables: list[Change] = []
    lone = False
    for word in words:
        if word.startswith("+") and not kernels:
            raise UserError(f"a change without a kernel: {word}", "write the kernel first")
        if not word.startswith("+") and (variable := _variable(word)):
            variables.append(variable)
            continue
        if lone and (word == "+" or not word.startswith("+")):
            raise _lone_plus()
        if word == "+":
            kernels.append(kernels[0])
        elif word.startswith("+"):
            kernels[-1] = with_changes(kernels[-1], [parse_change(word)])
        else:
            kernels.append(parse_kernel_spec(word))
        lone = word == "+"
    if lone:
        raise _lone_plus()
    if variables and all(isinstance(kernel, BuiltSpec) for kernel in kernels):
        raise UserError(
            f"no kernel is built here that {str(variables[0])[1:]} could hold for",
            "variables of make need a source: PATH, git:PATH@REV or deb-src:PACKAGE",
        )
    return kernels, tuple(variables)


def _lone_plus() -> UserError:
    return UserError("a lone + has no changes after it", "for example: ./linux + +fix.patch")


def _variable(word: str) -> VariableChange | None:
    if word.startswith("CONFIG_") and "=" in word:
        raise UserError(
            f"not a kernel spec: {word!r}", f"for a change write +{word}", (word, f"+{word}")
        )
    return parse_variable(word)


def _with_variables(spec: KernelSpec, variables: tuple[Change, ...]) -> KernelSpec:
    if isinstance(spec, BuiltSpec):
        return spec
    return msgspec.structs.replace(spec, changes=(*variables, *spec.changes))
