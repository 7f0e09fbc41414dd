# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands, whose options are made from the fields of the requests that they take."""

import enum
import inspect
import shlex
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec
from click.core import ParameterSource

from kdelta.cli.defaults import defaults_file
from kdelta.cli.output import silence_progress
from kdelta.cli.plain_options import ProgressOptions
from kdelta.cli.reading import READERS, one_of
from kdelta.host.command import echo_commands, log_to_stderr
from kdelta.host.invoked import use_defaults
from kdelta.spec.change import ALLOW_UNKNOWN, MOST_FUZZ, FuzzChange
from kdelta.spec.errors import UserError
from kdelta.spec.limits import ITEMS_A_GIB
from kdelta.spec.option import (
    AfterDashes,
    Argument,
    HelpSection,
    Option,
    OptionKind,
    Without,
    option,
)
from kdelta.spec.words import with_change


class ChangeOptions(msgspec.Struct, frozen=True):
    """Changes of all kernels."""

    allow_unknown: Annotated[
        bool, option("--allow-unknown", help="Leave out options that a tree does not have.")
    ] = False
    fuzz: Annotated[
        int | None,
        option(
            "--fuzz",
            metavar="N",
            least=0,
            most=MOST_FUZZ,
            help="Apply patches with N lines of context less, as patch -F.",
        ),
    ] = None


def changed_words(
    words: Sequence[str], asked: ChangeOptions, *, of_one_tree: bool = False
) -> list[str]:
    """Return the words of a command line with what these options stand for: for each kernel that
    has changes, or for the tree that all changes are of.
    """
    changes = [f"+{ALLOW_UNKNOWN}"] if asked.allow_unknown else []
    if asked.fuzz is not None:
        changes.append(str(FuzzChange(asked.fuzz)))
    found = list(words)
    for change in changes:
        found = [*found, change] if of_one_tree else with_change(found, change)
    return found


Function = Callable[..., Any]
Annotations = Sequence[object]

_AFTER_DASHES = "kdelta.command"
_ORDER = [*HelpSection]


class OptionParam(click.Option):
    """A field's option."""

    def __init__(self, name: str, declared: Option, type_: Any, usual: object) -> None:
        self.declared, self.type_, self.usual = declared, type_, usual
        base, several, is_flag = _shape(type_, declared)
        self.item, self.usual_text = base, _usual_text(usual, declared)
        flag: dict[str, Any] = {"is_flag": is_flag or None}
        if declared.bare:
            flag = {"is_flag": False, "flag_value": ""}
        super().__init__(
            [*declared.names, name],
            help=declared.help,
            metavar=declared.metavar or None,
            type=None if is_flag else _click_type(base, declared),
            multiple=several,
            required=declared.required,
            **flag,
        )

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the bounds, and the default in the option's own words."""
        extra = super().get_help_extra(ctx)
        extra.pop("default", None)
        if self.declared.most is None:  # bounds of 0 or 1 are plain
            extra.pop("range", None)
        if text := self.declared.usual or self.usual_text:
            extra["default"] = text
        return extra

    def value_of(self, given: Any) -> object:
        """Return the field's value, of what the parser made of the words; UserError for a slip."""
        name = self.declared.names[-1]
        if self.is_flag:
            return bool(given) is not self.declared.off
        if self.declared.kind is not None:
            return READERS[self.declared.kind](name, given, self.type_)
        read = partial(_read, name, self.item)
        return tuple(map(read, given)) if self.multiple else read(given)


def _read(name: str, base: Any, given: Any) -> object:
    if typing.get_origin(base) is typing.Literal:
        return one_of(name, given, typing.get_args(base))
    if isinstance(base, type) and issubclass(base, enum.Enum):
        return base(given)
    return Path(given) if base is Path else given


def _shape(type_: Any, declared: Option) -> tuple[Any, bool, bool]:
    """The type of one value, whether there may be several, and whether it is a flag."""
    if typing.get_origin(type_) in (types.UnionType, typing.Union):
        type_ = next(one for one in typing.get_args(type_) if one is not type(None))
    several = typing.get_origin(type_) is tuple or declared.kind is OptionKind.WEIGHT
    base = typing.get_args(type_)[0] if typing.get_origin(type_) is tuple else type_
    if declared.kind is OptionKind.LIST:
        several = False
    return base, several, base is bool


def _click_type(base: Any, declared: Option) -> Any:
    if isinstance(base, type) and issubclass(base, enum.Enum) and declared.kind is None:
        return click.Choice([one.value for one in base])
    number: Any = int if base is int else float
    if declared.kind is OptionKind.TRACE:
        number = float
    if base not in (int, float) and declared.kind is not OptionKind.PERCENT:
        return click.STRING
    if declared.least is None and declared.most is None:
        return click.INT if number is int else click.FLOAT
    least, most = (
        number(one) if one is not None else None for one in (declared.least, declared.most)
    )
    return (click.IntRange if number is int else click.FloatRange)(least, most)


def _usual_text(usual: object, declared: Option) -> str:
    """A default as it would be typed; empty for what is none."""
    if declared.kind is OptionKind.PERCENT and isinstance(
        usual, float | int | typing.SupportsFloat
    ):
        return f"{100 * float(usual):g}"
    if declared.kind is OptionKind.TRACE and isinstance(usual, int):
        return f"{usual / ITEMS_A_GIB:g}"
    if isinstance(usual, bool) or usual is None or usual in ("", (), msgspec.NODEFAULT):
        return ""
    if isinstance(usual, tuple):
        return ", ".join(str(getattr(one, "value", one)) for one in usual)
    if isinstance(usual, float):
        return f"{usual:g}"
    return str(getattr(usual, "name", usual) if declared.kind is OptionKind.CPU else usual)


class ArgumentParam(click.Argument):
    """The words of a command that are no options."""

    def __init__(self, name: str, declared: Argument, type_: Any, usual: object) -> None:
        self.declared = declared
        several = typing.get_origin(type_) is list
        super().__init__(
            [name],
            metavar=declared.metavar,
            nargs=-1 if several else 1,
            required=usual is inspect.Parameter.empty,
            default=None if usual is inspect.Parameter.empty or several else usual,
            type=click.STRING,
        )

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002
        """Return what the words are called, and what they are."""
        return self.declared.metavar, self.declared.help


class Command(click.Command):
    """A command: a function, and the parameters that its types stand for.

    Of the function's parameters one with an Argument is the words, one with AfterDashes is what
    follows `--`, each Struct is a group of options, and `partial[Request]` a request whose other
    fields the function gives.
    """

    def __init__(self, name: str, function: Function, epilog: str | None) -> None:
        self._function = function
        hints = typing.get_type_hints(function, include_extras=True)
        self._parts: dict[str, type[msgspec.Struct]] = {}
        self._after: tuple[str, AfterDashes] | None = None
        self._words = ""
        params: list[click.Parameter] = []
        for key, one in inspect.signature(function).parameters.items():
            base, notes = _annotated(hints[key])
            if declared := _note(notes, Argument):
                self._words = key
                params.append(ArgumentParam(key, declared, base, one.default))
            elif after := _note(notes, AfterDashes):
                self._after = key, after
                params += _params("after__", after.of)
            else:
                self._parts[key] = _struct_of(base)
                params += _params("", self._parts[key])
        self._argument = next((p.declared for p in params if isinstance(p, ArgumentParam)), None)
        self.is_of_kernels = self._argument is not None and self._argument.kernels
        if self.is_of_kernels:
            params += [*_params("", ChangeOptions), *_params("", ProgressOptions)]
        super().__init__(
            name,
            params=params,
            callback=self._run,
            help=inspect.getdoc(function),
            epilog=epilog,
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the command after the first -- aside, which is not kdelta's, and parse the rest."""
        if self._after and "--" in args:
            at = args.index("--")
            ctx.meta[_AFTER_DASHES] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, after a note on what the file of defaults set."""
        used = [
            word
            for param in self.params
            if param.name and ctx.get_parameter_source(param.name) is ParameterSource.DEFAULT_MAP
            for word in _typed(param, ctx.params[param.name])
        ]
        if used and (text := use_defaults(used, defaults_file())) and not ctx.params.get("quiet"):
            log_to_stderr(text)
        return super().invoke(ctx)

    def _run(self, **_: Any) -> Any:
        ctx = click.get_current_context()
        given: dict[str, Any] = {}
        if self.is_of_kernels:
            said = ProgressOptions(**self._given("", ProgressOptions))
            echo_commands(wanted=said.verbose)
            silence_progress(wanted=said.quiet)
        if self._after:
            key, after = self._after
            found = self._given("after__", after.of)
            given[key] = after.made(ctx.meta.get(_AFTER_DASHES), ctx.command_path, found)
            self._refuse_with_command(ctx, after.instead)
        for key, part in self._parts.items():
            asked = self._given("", part)
            is_partial = self._is_partial(key)
            given[key] = partial(part, **asked) if is_partial else part(**asked)
        if self._words:
            given[self._words] = self._words_of(ctx)
        return self._function(**given)

    def _refuse_with_command(self, ctx: click.Context, options: Sequence[str]) -> None:
        """Raise UserError for a command after -- and any of these options at once."""
        command = ctx.meta.get(_AFTER_DASHES) or ()
        for param in self.params:
            option = next((one for one in options if command and one in param.opts), None)
            words = _typed(param, ctx.params[str(param.name)]) if option else []
            if words and ctx.get_parameter_source(str(param.name)) is not ParameterSource.DEFAULT:
                raise UserError(
                    f"{option} {words[1]} and a command at once: {shlex.join(command)}",
                    "leave one of them out",
                )

    def _is_partial(self, key: str) -> bool:
        hints = typing.get_type_hints(self._function, include_extras=True)
        return typing.get_origin(_annotated(hints[key])[0]) is partial

    def _words_of(self, ctx: click.Context) -> Any:
        words = ctx.params[self._words]
        words = list(words) if isinstance(words, tuple) else words
        if words and self._argument and self._argument.kernels:
            changes = ChangeOptions(**self._given("", ChangeOptions))
            return changed_words(words, changes, of_one_tree=self._argument.one_tree)
        return words

    def _given(
        self,
        prefix: str,
        struct: type[msgspec.Struct],
        at: msgspec.Struct | None = None,
        leave_out: Sequence[str] = (),
    ) -> dict[str, Any]:
        """The fields of a request that the command line, or the file of defaults, sets."""
        ctx = click.get_current_context()
        by_name = {param.name: param for param in self.params}
        found: dict[str, Any] = {}
        for one in _fields(struct, at, leave_out):
            name = f"{prefix}{one.name}"
            if one.nested is not None:
                inner = self._given(f"{name}__", type(one.nested), one.nested, one.without)
                if inner:
                    found[one.name] = msgspec.structs.replace(one.nested, **inner)
            elif ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
                param = by_name[name]
                assert isinstance(param, OptionParam)
                found[one.name] = param.value_of(ctx.params[name])
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the words and the options, under a heading for each group."""
        arguments = [p for p in self.params if isinstance(p, ArgumentParam)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([one.get_help_record(ctx) for one in arguments])
        for group in _ORDER:
            rows = [
                record
                for param in self.get_params(ctx)
                if not isinstance(param, ArgumentParam) and _group_of(param) is group
                if (record := param.get_help_record(ctx))
            ]
            if rows:
                with formatter.section(str(group)):
                    formatter.write_dl(rows)


def _group_of(param: click.Parameter) -> HelpSection:
    return param.declared.group if isinstance(param, OptionParam) else HelpSection.SHOWN  # --help


def _annotated(hint: Any) -> tuple[Any, Annotations]:
    if typing.get_origin(hint) is typing.Annotated:
        base, *notes = typing.get_args(hint)
        return base, notes
    return hint, ()


_Note = typing.TypeVar("_Note")


def _note(notes: Annotations, kind: type[_Note]) -> _Note | None:
    return next((one for one in notes if isinstance(one, kind)), None)


def _struct_of(base: Any) -> type[msgspec.Struct]:
    found = typing.get_args(base)[0] if typing.get_origin(base) is partial else base
    if not (isinstance(found, type) and issubclass(found, msgspec.Struct)):
        raise TypeError(f"{base} is no request of a command")
    return found


class _Field(typing.NamedTuple):
    """A field of a request: its type, and its option, or the request that is nested in it."""

    name: str
    type_: Any
    usual: object
    option: Option | None
    nested: msgspec.Struct | None
    without: tuple[str, ...]


def _fields(
    struct: type[msgspec.Struct], at: msgspec.Struct | None, leave_out: Sequence[str]
) -> Iterator[_Field]:
    """The fields of a request that a command line sets; at: an instance with the defaults."""
    hints = typing.get_type_hints(struct, include_extras=True)
    for one in msgspec.structs.fields(struct):
        base, notes = _annotated(hints[one.name])
        usual = getattr(at, one.name) if at is not None else one.default
        declared = _note(notes, Option)
        nested = usual if isinstance(usual, msgspec.Struct) and declared is None else None
        if one.name in leave_out or (declared is None and nested is None):
            continue
        hidden = _note(notes, Without)
        yield _Field(
            one.name, base, usual, declared, nested, hidden.fields if hidden else tuple(leave_out)
        )


def _params(
    prefix: str,
    struct: type[msgspec.Struct],
    at: msgspec.Struct | None = None,
    leave_out: Sequence[str] = (),
) -> Iterator[click.Parameter]:
    """The options of a request's fields, and of the requests in it."""
    for one in _fields(struct, at, leave_out):
        if one.option is not None:
            yield OptionParam(f"{prefix}{one.name}", one.option, one.type_, one.usual)
        elif one.nested is not None:
            yield from _params(f"{prefix}{one.name}__", type(one.nested), one.nested, one.without)


def _typed(param: Any, value: Any) -> list[str]:
    """An option as a command line has it."""
    name = str(param.opts[-1])
    if param.is_flag:
        return [name] if value else []
    values = value if param.multiple else [value]
    shown = (f"{one:g}" if isinstance(one, float) else str(one) for one in values)
    return [word for one in shown for word in (name, one)]
