# SPDX-License-Identifier: GPL-2.0-or-later
"""What --measure names; --cycles and --clock are short for words of it, and --smp for conflicts."""

import typing
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from kdelta.cli.named_cpu import named_cpu
from kdelta.cli.options import CyclesOptions
from kdelta.cli.reading import one_of
from kdelta.cpus.model import CPU
from kdelta.lab.options import Clock
from kdelta.measures.registry import MEASURES
from kdelta.spec.errors import UserError

_CLOCKS: Sequence[str] = typing.get_args(Clock)
_PATH = "path"
_OF_OTHERS = frozenset({"cycles", "clock"})
"""Measures that take a word, and that options of their own ask for."""

_Request = TypeVar("_Request", bound=msgspec.Struct)


def with_measures(
    request: _Request, cycles: CyclesOptions | None
) -> tuple[_Request, CyclesOptions]:
    """Return a request of a study, and the CPUs of model cycles, with what --measure names; both as
    they are without it. cycles: None for a study that judges none. UserError for what it cannot
    measure.
    """
    asked: Any = request
    found = cycles or CyclesOptions()
    names = [_PATH]
    for word in asked.measures:
        name, _, argument = word.partition(":")
        _must_know(name, argument)
        names.append(name)
        if name == "cycles" and cycles is None:
            raise UserError("cannot measure cycles: this command judges no model cycles")
        if name == "cycles":
            cpu = named_cpu(argument) if argument else None
            found = CyclesOptions(_with(found.cycles, cpu))
        if name == "clock":
            clock = one_of("--measure clock", argument or _CLOCKS[0], _CLOCKS)
            timed = msgspec.structs.replace(asked.timed, clock=clock)
            asked = msgspec.structs.replace(asked, timed=timed)
        if name == "conflicts" and asked.lab.machine.cpus < 2:
            raise UserError("cannot measure conflicts: guests have one CPU", "add --smp 2")
    if not asked.measures:
        return request, found
    names += ["cycles"] if found.cycles else []
    names += ["clock"] if asked.timed.clock else []
    measures = tuple(dict.fromkeys(names))
    return msgspec.structs.replace(asked, measures=measures), found


def _must_know(name: str, argument: str) -> None:
    known = (_PATH, *MEASURES)
    if name not in known:
        raise UserError(
            f"cannot measure {name}: there is no such measure", f"use {', '.join(known)}"
        )
    if argument and name not in _OF_OTHERS:
        raise UserError(f"cannot measure {name}:{argument}: {name} is alone", f"write {name}")


def _with(cpus: Sequence[CPU | None], cpu: CPU | None) -> tuple[CPU | None, ...]:
    return tuple({one.name if one else "": one for one in (*cpus, cpu)}.values())
