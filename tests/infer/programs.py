# SPDX-License-Identifier: GPL-2.0-or-later
"""Small made-up kernels: objects whose code and data depend on options, and what they execute."""

import hashlib

import msgspec
from hypothesis import strategies as st

from kdelta.infer.reach.alive import BuiltSide
from kdelta.kernels.config.mentions import Mention, Mentions
from kdelta.kernels.objects.digest import Digest, GeneratedFile, ObjectDigest
from kdelta.kernels.objects.objects import CodePiece

OPTIONS = tuple(f"CONFIG_{letter}" for letter in "ABCDEF")
START = "start"
Config = frozenset[str]


class Element(msgspec.Struct, frozen=True):
    """A function or a variable. With `guard` on it refers to `more` as well, and is other code."""

    name: str
    refs: tuple[str, ...]
    guard: str | None = None
    more: tuple[str, ...] = ()

    def refs_in(self, config: Config) -> tuple[str, ...]:
        return (*self.refs, *self.more) if self.guard in config else self.refs


class Thing(msgspec.Struct, frozen=True):
    """An object. `exists`, `flag`: options that its folder's Makefile looks at, to list it and for
    its compiler flags; `header`: one that a generated header depends on; `initcall`: the guard of
    a function that boot calls if it is "" or on.
    """

    path: str
    functions: tuple[Element, ...]
    data: tuple[Element, ...]
    extra: frozenset[str] = frozenset()
    exists: str | None = None
    flag: str | None = None
    header: str | None = None
    initcall: str | None = None

    def is_in(self, config: Config) -> bool:
        return self.exists is None or self.exists in config

    def has_initcall(self, config: Config) -> bool:
        return self.initcall == "" or self.initcall in config

    def content(self, element: Element, refs: tuple[str, ...], config: Config) -> int:
        """What the element is compiled to."""
        seen = [str(option in config) for option in (element.guard, self.flag, self.header)]
        text = " ".join((element.name, *seen, *refs))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class Program(msgspec.Struct, frozen=True):
    """What refers to an object that may be absent looks at the option that lists it: otherwise the
    kernel would not link without it.
    """

    things: tuple[Thing, ...]

    def listed_by(self) -> dict[str, str]:
        """For each function and variable of an object that may be absent: the option."""
        return {
            element.name: thing.exists
            for thing in self.things
            for element in (*thing.functions, *thing.data)
            if thing.exists
        }

    def refs_in(self, element: Element, config: Config) -> tuple[str, ...]:
        listed_by = self.listed_by()
        return tuple(
            ref for ref in element.refs_in(config) if listed_by.get(ref) in (None, *config)
        )

    def digest(self, config: Config) -> Digest:
        objects = {
            thing.path: self._object(thing, config) for thing in self.things if thing.is_in(config)
        }
        headers = {thing.header for thing in self.things if thing.header}
        generated = {
            f"include/generated/{option}.h": GeneratedFile(
                str(option in config), frozenset({option}), "prepare"
            )
            for option in sorted(headers)
        }
        return Digest(objects, generated)

    def _object(self, thing: Thing, config: Config) -> ObjectDigest:
        guards = {element.guard for element in (*thing.functions, *thing.data)}
        listed_by = self.listed_by()
        for element in (*thing.functions, *thing.data):
            guards |= {listed_by.get(ref) for ref in (*element.refs, *element.more)}
        options = {guard for guard in (*guards, thing.initcall) if guard}

        def codes(elements: tuple[Element, ...]) -> dict[str, CodePiece]:
            return {
                element.name: CodePiece(thing.content(element, refs, config), 1, ".text", refs)
                for element in elements
                for refs in [self.refs_in(element, config)]
            }

        functions = codes(thing.functions)
        collected = {}
        if thing.has_initcall(config):
            name = thing.functions[0].name
            collected[".initcall6.init"] = CodePiece(1, 4, ".initcall6.init", (name,))
        return ObjectDigest(
            path=thing.path,
            source=thing.path.replace(".o", ".c"),
            module="",
            options=frozenset(options) | thing.extra,
            generated=frozenset({f"include/generated/{thing.header}.h"} if thing.header else ()),
            is_assembler=False,
            is_opaque=False,
            functions=functions,
            data=codes(thing.data),
            collected=collected,
        )

    def trace(self, config: Config) -> dict[str, int]:
        """What is executed and read, with its content: functions and data by name."""
        where: dict[str, tuple[Thing, Element]] = {}
        pending = [START]
        for thing in self.things:
            if thing.is_in(config):
                for element in (*thing.functions, *thing.data):
                    where[element.name] = (thing, element)
                if thing.has_initcall(config):
                    pending.append(thing.functions[0].name)
        found: dict[str, int] = {}
        while pending:
            name = pending.pop()
            if name in where and name not in found:
                thing, element = where[name]
                refs = self.refs_in(element, config)
                found[name] = thing.content(element, refs, config)
                pending += refs
        return found

    def side(self, config: Config) -> BuiltSide:
        digest = self.digest(config)
        functions = frozenset().union(*(thing.functions for thing in digest.objects.values()))
        executed = functions & self.trace(config).keys()
        return BuiltSide(digest, executed, executed)

    def mentions(self) -> Mentions:
        found: dict[str, tuple[Mention, ...]] = {}
        for thing in self.things:
            for option, lists in ((thing.exists, True), (thing.flag, False)):
                if option:
                    mention = Mention("Makefile:1", thing.path, lists)
                    found[option] = (*found.get(option, ()), mention)
        return Mentions(found)


def _elements(names: list[str], refs: st.SearchStrategy[str]) -> st.SearchStrategy[list[Element]]:
    return st.tuples(
        *(
            st.builds(
                Element,
                name=st.just(name),
                refs=st.lists(refs, max_size=2).map(tuple),
                guard=st.sampled_from((None, None, None, *OPTIONS)),
                more=st.lists(refs, max_size=2).map(tuple),
            )
            for name in names
        )
    ).map(list)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Up to six objects that call and read each other in any way."""
    n = draw(st.integers(2, 6))
    functions = [[f"f{i}_{k}" for k in range(2)] for i in range(n)]
    functions[0][0] = START
    data = [[f"d{i}_{k}" for k in range(2)] for i in range(n)]
    names = st.sampled_from([name for group in (*functions, *data) for name in group])
    option = st.sampled_from((None, None, None, None, *OPTIONS))
    things = [
        Thing(
            path=f"o{i}.o",
            functions=tuple(draw(_elements(functions[i], names))),
            data=tuple(draw(_elements(data[i], names))),
            extra=frozenset(draw(st.lists(st.sampled_from(OPTIONS), max_size=1))),
            exists=draw(option) if i else None,
            flag=draw(option),
            header=draw(option),
            initcall=draw(st.sampled_from((None, None, None, None, "", *OPTIONS))),
        )
        for i in range(n)
    ]
    return Program(tuple(things))
