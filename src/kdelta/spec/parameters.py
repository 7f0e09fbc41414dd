# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot parameters: words of a kernel's command line, split and quoted as the kernel does it."""

import re
from collections.abc import Iterable, Mapping

from kdelta.spec.errors import UserError

_WORD = re.compile(r'(?:[^ "]|"[^"]*")+')
_PRINTABLE = re.compile(r"[ -~]*")
_QUOTED = "'+cmdline:dyndbg=\"file a.c +p\"'"
_EXAMPLE = "for example +cmdline:mitigations=off"

_INIT = "kdelta's agent is the guest's init"
_RANDOM = "kdelta sets it so that a boot repeats to the last instruction"
REFUSED: Mapping[str, str] = {
    "--": "what follows is for the init, and that is kdelta's agent",
    "init": _INIT,
    "rdinit": _INIT,
    "console": "kdelta reads the console that it sets",
    "panic": "kdelta sets it so that a guest ends when its kernel panics",
    "nokaslr": "kdelta sets it: code must be where the image has it",
    "kaslr": "kdelta sets nokaslr: code must be where the image has it",
    "norandmaps": _RANDOM,
    "random.trust_cpu": _RANDOM,
    "random.trust_bootloader": _RANDOM,
    "noreplace_smp": "kdelta sets it: a guest with one CPU must keep its locked instructions",
    "tsc": "kdelta sets it: the guest's clock is the count of instructions",
    "maxcpus": "kdelta sets it: guests have one CPU",
}
"""What kdelta sets itself, or must not be set, and why; - is _ in these names."""


def split_parameters(text: str) -> tuple[str, ...]:
    """The parameters in a text: separated by blanks, of which those between double quotes are part
    of a parameter, as the kernel's next_arg() has it (lib/cmdline.c). UserError for what the kernel
    would not read as it stands, and for what clashes with kdelta's own.
    """
    if not _PRINTABLE.fullmatch(text):
        raise UserError(
            f"cannot set the boot parameter {text!r}: it has a character that is not printable "
            "ASCII, and the kernel may split it there",
            _EXAMPLE,
        )
    if text.count('"') % 2:
        raise UserError(
            f"cannot set the boot parameter {text!r}: a double quote is not closed",
            f"the kernel knows double quotes alone, without escapes: {_QUOTED}",
        )
    if not (found := tuple(_WORD.findall(text))):
        raise UserError(f"no boot parameter in {'+cmdline:' + text!r}", _EXAMPLE)
    for word in found:
        _must_be_possible(word)
    return found


def _must_be_possible(word: str) -> None:
    name, _ = parameter(word)
    first = word if word[0] in "'\"" else word.partition("=")[2]
    if first.startswith("'"):
        raise UserError(
            f"cannot set the boot parameter {word}: the kernel does not know single quotes, and "
            "would take them as part of it",
            f"leave them out, or use double quotes: {_QUOTED}",
        )
    if not name:
        raise UserError(f"cannot set the boot parameter {word!r}: it has no name", _EXAMPLE)
    why = REFUSED.get(name if name == "--" else name.replace("-", "_"), "")
    if name.startswith("kdelta."):
        why = "such names are between kdelta and its agent"
    if why:
        raise UserError(f"cannot set the boot parameter {word}: {why}", "leave it out")


def parameter(word: str) -> tuple[str, str | None]:
    """Name and value of a parameter as the kernel reads it; None if it has no =."""
    inner = word
    if quoted := word.startswith('"'):
        inner = inner[1:]
    name, equals, value = inner.partition("=")
    if not name and equals:  # next_arg() takes no = for one that is first
        return "", value
    if equals and value.startswith('"'):
        return name, value[1:].removesuffix('"')
    if quoted:
        inner = inner.removesuffix('"')
        name, equals, value = inner.partition("=")
    return name, value if equals else None


def unknown_parameters(asked: Iterable[str], given_to_init: Iterable[str]) -> list[str]:
    """Those of the parameters that the kernel did not know: it gives them to init, those with a =
    as NAME=VALUE in the environment, others as arguments (init/main.c, unknown_bootoption()).
    """
    # The environment has one value of a name.
    handed = {(text.partition("=")[0], "=" in text) for text in given_to_init}
    read = ((word, *parameter(word)) for word in asked)
    return [word for word, name, value in read if (name, value is not None) in handed]
