# SPDX-License-Identifier: GPL-2.0-or-later
"""What is reported of a slip: the word, what is wrong with it, and a command that works."""

import contextlib
import difflib
import io
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kdelta.cli import removed
from kdelta.cli.command import ArgumentParam, OptionParam
from kdelta.cli.commands import COMMANDS, load_command
from kdelta.cli.meant import are_kernels, kernels_meant
from kdelta.cli.removed import renamed
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import KernelSpecError
from kdelta.studies.forms import form_of_file

Words = tuple[str, ...]

_UNITS = {"%": 1, "s": 1, "M": 1, "MB": 1, "MiB": 1, "m": 60, "h": 3600}
_UNITS |= {"G": 1024, "GB": 1024, "GiB": 1024}
_QUANTITY = re.compile(rf"(\d+)\s*({'|'.join(sorted(_UNITS, key=len, reverse=True))})")
_NUMBER = r"\d+(?:\.\d+)?"
_EXTRA = re.compile(r"unexpected extra argument(?:s|\(s\))? \((.*)\)")


_TWO = (("--good", "--bad"), ("--old", "--new"), ("--base", "--other"))
_PAIRS = {"bisect": _TWO, "compare": _TWO, "gate": _TWO, "diff": _TWO}
"""Options that other programs have for what are words here."""

_ALIKE = 0.7
"""How alike words are of which one was probably meant."""


class Slip(NamedTuple):
    """What is wrong, and corrected command lines, of which the first that parses is shown."""

    message: str
    hint: str = ""
    corrected: tuple[Words, ...] = ()


def usage_slip(error: Any, arguments: Sequence[str]) -> Slip:
    """Explain an error of the parser of arguments."""
    words = tuple(arguments)
    name = type(error).__name__
    if name == "NoSuchOption":
        return _no_option(error, words)
    if name == "MissingParameter":
        return Slip(f"cannot run kdelta {_command(words)}: {_shown(error.param)} is missing")
    if name == "BadParameter" and error.param is not None:
        return _bad_value(error, words)
    said: str = error.format_message()
    return _no_command(words) if said.startswith("No such command") else _other(error, words)


def _other(error: Any, words: Words) -> Slip:
    """What click itself reports of other slips: words too many, and an option without its value."""
    said: str = error.format_message()
    if extra := _EXTRA.search(said):
        found = extra[1].split()
        left = tuple(word for word in words if word not in found)
        message = f"cannot run kdelta {_command(words)}: it takes no argument {' '.join(found)}"
        return Slip(message, corrected=(left,))
    message = f"cannot run kdelta {_command(words)}: {said[:1].lower()}{said[1:].rstrip('.')}"
    if type(error).__name__ == "BadOptionUsage" and (value := _usual(error, words)):
        return Slip(message, corrected=(_with_value(words, error.option_name, value),))
    return Slip(message)


def _usual(error: Any, words: Words) -> str:
    """A value that an option without one may be given; empty where that is anyone's guess."""
    params = load_command(_command(words)).params if _command(words) in COMMANDS else ()
    param = next((one for one in params if error.option_name in one.opts), None)
    if not isinstance(param, OptionParam):
        return ""
    if "--html" in param.opts:
        return "report.html"
    return "" if param.declared.usual else param.usual_text


def _with_value(words: Words, option: str, value: str) -> Words:
    at = words.index(option) + 1
    return (*words[:at], value, *words[at:])


def advice_on(error: UserError, arguments: Sequence[str]) -> tuple[str, str]:
    """Return the hint of such an error, and a command that works in place of the one that met it;
    that is empty where the hint names one already.
    """
    words = tuple(arguments)
    hint = error.hint
    if isinstance(error, KernelSpecError) and (meant := kernels_meant(_positional(words))):
        hint = meant.advice
        corrected = words
        for wrong, right in meant.instead.items():
            corrected = _replaced(corrected, wrong, right)
    elif error.instead is None:
        return hint, "" if "kdelta " in hint else working(Slip(error.message), words)
    else:
        corrected = _replaced(words, *error.instead)
    return hint, working(Slip(error.message, corrected=(corrected,)), words)


def _positional(words: Words) -> Words:
    """The words of a command line before -- that are no options and no values of these."""
    try:
        context = load_command(words[0]).make_context(words[0], list(words[1:]))
    except Exception:  # noqa: BLE001  (it is used for what to advise, and nothing else)
        return ()
    params = (one for one in context.command.params if isinstance(one, ArgumentParam))
    given = (context.params[str(one.name)] for one in params)
    return tuple(word for one in given for word in ([one] if isinstance(one, str) else one or ()))


def working(slip: Slip, arguments: Sequence[str]) -> str:
    """Return the first of the corrected command lines that parses, else that of the help."""
    words = tuple(arguments)
    found = next((one for one in slip.corrected if one != words and parses(one)), None)
    if found is None:
        name = _command(words)
        found = (name, "--help") if name in COMMANDS else ("--help",)
    return shlex.join(["kdelta", *found])


def parses(words: Sequence[str]) -> bool:
    """Whether a command line is one that kdelta understands; nothing of it is run."""
    if tuple(words) == ("--help",):
        return True
    if not words or words[0] not in COMMANDS:
        return False
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            load_command(words[0]).make_context(words[0], list(words[1:]))
    except Exception as error:  # noqa: BLE001  (click's own, of whichever click, and options')
        return getattr(error, "exit_code", None) == 0  # what --help ends with
    return True


def _command(words: Words) -> str:
    return next((word for word in words if not word.startswith("-")), "")


def _no_command(words: Words) -> Slip:
    name = _command(words)
    rest = tuple(word for word in words if word != name)
    if name == "help":
        return Slip("cannot run help: --help is an option", corrected=((*rest[:1], "--help"),))
    if gone := removed.COMMANDS.get(name):
        message = f"cannot run {name}: it was removed, since {gone.reason}"
        return Slip(message, gone.instead, (gone.command,))
    message = f"cannot run {name}: there is no such command"
    later = next((word for word in rest if word in COMMANDS), None)
    if later is not None:
        others = list(words)
        others.remove(later)
        return Slip(message, "the command comes first", ((later, *others),))
    if "--" not in words and (kernels := are_kernels(words)):
        return Slip(message, "two kernels are compared by kdelta compare", (("compare", *kernels),))
    near = difflib.get_close_matches(name, COMMANDS, n=3, cutoff=_ALIKE)
    hint = f"did you mean {' or '.join(near)}?" if near else ""
    fixed = tuple(_replaced(words, name, one) for one in near)
    return Slip(message, hint, (*fixed, *((one, "--help") for one in near)))


def _foreign(words: Words, wrong: str) -> Slip | None:
    """An option as other programs have it; here its value is a word."""
    pair = next((pair for pair in _PAIRS.get(_command(words), ()) if wrong in pair), None)
    if pair is None:
        return None
    ends = [next(_values((name,), words), "") for name in pair]
    rest = words[1:]
    for name, value in zip(pair, ends, strict=True):
        rest = tuple(word for word in rest if word not in (name, f"{name}={value}"))
    rest = tuple(word for word in rest if word not in ends)
    joined = ("..".join(ends),) if words[0] == "bisect" else tuple(filter(None, ends))
    how = "GOOD..BAD" if words[0] == "bisect" else "BASE OTHER"
    message = f"cannot run kdelta {words[0]}: there is no option {wrong}"
    return Slip(message, f"write them without: {how}", ((words[0], *joined, *rest),))


def _no_option(error: Any, words: Words) -> Slip:
    wrong = error.option_name
    if gone := removed.OPTIONS.get(wrong):
        message = f"cannot use {wrong}: it was removed, since {gone.reason}"
        return Slip(message, gone.instead, (tuple(word for word in words if word != wrong),))
    known = [name for param in error.ctx.command.params for name in (*param.opts, "--help")]
    if foreign := _foreign(words, wrong):
        return foreign
    if (now := renamed(_command(words), wrong)) in known:
        message = f"cannot run kdelta {_command(words)}: there is no option {wrong}"
        return Slip(message, f"it is called {now} now", (_with_ending(words, wrong, now),))
    if (at := _program_at(words, wrong)) is not None:
        message = f"cannot run kdelta {_command(words)}: there is no option {wrong}"
        hint = f"if it is one of {words[at]}, the command stands after --"
        return Slip(message, hint, ((*words[:at], "--", *words[at:]),))
    elsewhere = _who_has(wrong)
    near = [] if elsewhere else _near(wrong, known)
    where = f"kdelta {_command(words)}".rstrip()
    hint = f"did you mean {near[0]}?" if near else elsewhere
    fixed = (_replaced(words, wrong, near[0]),) if near else ()
    return Slip(f"cannot run {where}: there is no option {wrong}", hint, fixed)


def _with_ending(words: Words, wrong: str, now: str) -> Words:
    """The words with the option's name of now, and a file that can be written."""
    fixed = _replaced(words, wrong, now)
    value = next(_values((now,), fixed), "")
    try:
        if _command(words) == "report":
            form_of_file(value)
    except UserError as error:
        fixed = _replaced(fixed, *(error.instead or (value, value)))
    return fixed


def _program_at(words: Words, wrong: str) -> int | None:
    """Where a program of this host begins that is followed by that option, after a kernel."""
    if _command(words) not in ("run", "shell"):
        return None
    last = next((at for at, word in enumerate(words) if word.partition("=")[0] == wrong), 0)
    places = (at for at in range(2, last) if shutil.which(words[at]))
    return next(places, None)


def _near(wrong: str, known: Sequence[str]) -> list[str]:
    """The option that was probably meant: the one that begins so, or that is spelt alike."""
    begin = [one for one in known if one.startswith(wrong) and wrong.startswith("--")]
    return begin[:1] or difflib.get_close_matches(wrong, known, n=1, cutoff=_ALIKE)


def _who_has(option: str) -> str:
    """Which other commands have an option."""
    found = [
        name
        for name in COMMANDS
        if any(option in param.opts for param in load_command(name).params)
    ]
    return f"{option} is an option of {', '.join(found)}" if found else ""


def _bad_value(error: Any, words: Words) -> Slip:
    param = error.param
    value = next(_values(param.opts, words), "")
    shown = f"{param.opts[-1]} {value}".strip() if param.opts[0][:1] == "-" else _shown(param)
    is_known = isinstance(param, OptionParam) and not param.declared.usual and param.usual_text
    right = [param.usual_text] if is_known else []
    if bound := _bound(error.message, value):
        reason = f"it is {' '.join(bound)}"
        right.insert(0, bound[1])
    elif re.search("valid int", error.message):
        reason = "it takes a whole number, without a unit"
    elif re.search("valid (number|float)", error.message):
        reason = "it takes a number, without a unit"
    else:
        reason = error.message[:1].lower() + error.message[1:]
    if quantity := _QUANTITY.fullmatch(value):
        right.insert(0, str(int(quantity[1]) * _UNITS[quantity[2]]))
    message = f"cannot use {shown}: {reason}"
    return Slip(message, corrected=tuple(_replaced(words, value, one) for one in right))


def _bound(message: str, value: str) -> tuple[str, str] | None:
    """The bound that a number is beyond, in click's words."""
    if "not in the range" not in message:
        return None
    least = re.search(rf"({_NUMBER})<=x|x>=({_NUMBER})", message)
    most = re.search(rf"x<=({_NUMBER})", message)
    if least and float(value) < float(least[1] or least[2]):
        return "at least", f"{float(least[1] or least[2]):.12g}"
    return ("at most", f"{float(most[1]):.12g}") if most else None


def _values(options: Sequence[str], words: Words) -> Iterator[str]:
    """What was given to an option."""
    for at, word in enumerate(words):
        if word in options:
            yield from words[at + 1 : at + 2]
        elif word.partition("=")[0] in options:
            yield word.partition("=")[2]


def _shown(param: Any) -> str:
    """What a parameter is called in the help."""
    if param.opts[0].startswith("-"):
        return str(param.opts[-1])
    words = str(param.metavar or param.name)
    return words if words.startswith("-") else words.partition(" ")[0]


def _replaced(words: Words, wrong: str, *right: str) -> Words:
    """The words with others in place of that one, alone or after an option's equals sign; of --
    and all that follows it.
    """
    if wrong == "--":
        return (*(words[: words.index("--")] if "--" in words else words), *right)
    found: list[str] = []
    for word in words:
        option, _, value = word.partition("=")
        with_option = (f"{option}={' '.join(right)}",)
        found += right if word == wrong else with_option if value == wrong else (word,)
    return tuple(found)
