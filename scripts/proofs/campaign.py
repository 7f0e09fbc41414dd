# SPDX-License-Identifier: GPL-2.0-or-later
"""What all proofs share: their command line, their records, the tables of their page, their checks.

    scripts/proofs/NAME.py [TRIAL]...    make the trials that have no record, and the page's tables
    scripts/proofs/NAME.py --check       check what is recorded, and make nothing

A proof's file has its type of records, what makes a trial, what its page shows, a `PROOF` of these,
and functions `check_...`, which assert what its records (or its code) must be. `make proofs` runs
the checks of all. A record is a line of JSON that is written as soon as its trial is made, so that
what was interrupted goes on where it was.
"""

import argparse
import contextlib
import importlib
import inspect
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

import kdelta
from kdelta.host.files import write_atomic
from kdelta.lab.progress import Silent
from kdelta.report.stored import Stored
from kdelta.studies.forms import text
from kdelta.studies.kinds import question_of

ROOT = Path(__file__).parents[2]
CASES, BUILD = ROOT / "docs/cases", ROOT / "build"
OLD, NEW = "deb:linux-image-cloud-amd64@bookworm", "deb:linux-image-6.12-cloud-amd64@bookworm"
# Some proofs use the guests of tests.
sys.path.insert(0, str(ROOT))
R = TypeVar("R", bound=msgspec.Struct)
Table = Callable[[Sequence[R]], str]


@dataclass(frozen=True, kw_only=True)
class Proof(Generic[R]):
    """A question to real systems, asked in trials.

    record   the type of a trial's record
    file     the records, a line each; those below docs are committed, and checked
    trials   the names of all trials in their order, of the options
    make     makes these trials one after the other and yields their records
    name_of  returns the name of a record's trial
    wrong    yields what records show to be not as it must be
    summary  says in a line or more what a record shows
    answer   says what all records show
    pages    files with tables that are made of the records, by the names of their marks
    sizes    options that are numbers, with their defaults, as --trials N
    options  adds others
    """

    record: type[R]
    file: Path
    trials: Callable[[argparse.Namespace], Iterable[str]]
    make: Callable[[Sequence[str], argparse.Namespace], Iterator[R]]
    name_of: Callable[[R], str] = attrgetter("name")
    wrong: Callable[[Sequence[R]], Iterable[str]] = lambda _: ()
    summary: Callable[[R], str] = lambda _: ""
    answer: Callable[[Sequence[R]], str] = lambda _: ""
    pages: Mapping[Path, Mapping[str, Table[R]]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Callable[[argparse.ArgumentParser], object] = lambda _: None

    @property
    def is_committed(self) -> bool:
        """Return whether its records are part of the documentation."""
        return self.file.is_relative_to(ROOT / "docs")

    def records(self, file: Path | None = None) -> list[R]:
        """Return the records that there are, in the order in which they were made."""
        file = file or self.file
        lines = file.read_bytes().splitlines() if file.exists() else []
        return [msgspec.json.decode(line, type=self.record) for line in lines]

    def parsed(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the options of a command line."""
        doc = sys.modules[self.make.__module__].__doc__ or ""
        parser = argparse.ArgumentParser(description=doc.splitlines()[0])
        parser.add_argument("trial", nargs="*", help="make these alone")
        parser.add_argument("--out", type=Path, default=self.file.parent, help="where records are")
        parser.add_argument("--again", action="store_true", help="make also what has a record")
        parser.add_argument("--check", action="store_true", help="check the records, make nothing")
        for name, size in self.sizes.items():
            parser.add_argument(f"--{name}", type=int, default=size, metavar="N")
        self.options(parser)
        return parser.parse_args(words)

    def main(self) -> int:
        """Do what the command line says; 1 if something is not as it must be."""
        options = self.parsed(sys.argv[1:])
        if options.check:
            return failures(sys.modules[self.make.__module__])
        names = list(self.trials(options))
        if unknown := [one for one in options.trial if one not in names]:
            sys.exit(f"no trial {unknown[0]}; there are {', '.join(names)}")
        found = self.made(options.trial or names, options)
        for page in self.pages if options.out == self.file.parent else ():
            page.write_text(self.with_tables(page, found))
        wrong = list(self.wrong(found))
        print(*filter(None, [self.answer(found), *wrong]), sep="\n")
        return int(bool(wrong))

    def made(self, names: Sequence[str], options: argparse.Namespace) -> list[R]:
        """Make what has no record of these trials, or all of them; return all records there are."""
        file = options.out.absolute() / self.file.name
        file.parent.mkdir(parents=True, exist_ok=True)
        found = {self.name_of(one): one for one in self.records(file)}
        missing = [name for name in names if options.again or name not in found]
        for one in self.make(missing, options) if missing else ():
            is_new = self.name_of(one) not in found
            found[self.name_of(one)] = one
            if is_new:
                with file.open("ab") as to:
                    to.write(line_of(one))
            else:
                write_atomic(file, b"".join(map(line_of, found.values())))
            print(f"{self.name_of(one)}: {self.summary(one)}", flush=True)
        return list(found.values())

    def with_tables(self, page: Path, found: Sequence[R]) -> str:
        """Return a page with the tables of these records between their marks."""
        content = page.read_text()
        for name, table in self.pages[page].items():
            begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
            before, mark, rest = content.partition(begin)
            _, end_mark, after = rest.partition(end)
            assert mark, f"{page} has no {begin}"
            assert end_mark, f"{page} has no {end}"
            content = f"{before}{begin}\n\n{table(found)}\n\n{end}{after}"
        return content

    def check(self) -> None:
        """Assert that committed records are of all trials and right, and that the page has them."""
        found = self.records()
        names = [self.name_of(one) for one in found]
        assert names == list(self.trials(self.parsed([]))), f"records are of {names}"
        assert not list(self.wrong(found)), list(self.wrong(found))
        for page in self.pages:
            assert self.with_tables(page, found) == page.read_text(), f"{page} has other tables"


def line_of(record: msgspec.Struct) -> bytes:
    """Return a record as a line."""
    return msgspec.json.encode(record) + b"\n"


def checks(module: Any) -> dict[str, Callable[[], None]]:
    """Return what there is to check of a proof, by name; functions with a parameter get its records
    if these are committed.
    """
    proof: Proof[Any] | None = getattr(module, "PROOF", None)
    is_committed = proof is not None and proof.is_committed
    found = {"records": proof.check} if proof and is_committed else {}
    for name, check in vars(module).items():
        if name.startswith("check_") and check.__module__ == module.__name__:
            if not inspect.signature(check).parameters:
                found[name] = check
            elif proof and is_committed:
                found[name] = partial(_check_records, check, proof)
    return found


def _check_records(check: Callable[[Sequence[Any]], None], proof: Proof[Any]) -> None:
    check(proof.records())


def failures(module: Any) -> int:
    """Check a proof and print what fails; return 1 if anything does."""
    failed = 0
    for name, check in checks(module).items():
        try:
            check()
        except AssertionError:
            failed += 1
            print(name, *traceback.format_exc().splitlines()[-3:], sep="\n")
    print(f"{len(checks(module))} checks, {failed} failed")
    return int(failed > 0)


def modules() -> Iterator[Any]:
    """Yield the proofs that have something to check."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source = path.read_text()
        if path != Path(__file__) and ("\nPROOF = " in source or "\ndef check_" in source):
            module = importlib.import_module(path.stem)
            if checks(module):
                yield module


class Aloud(Silent):
    """Prints each step, and how it ended."""

    def log(self, line: str) -> None:
        """Print a line to stderr."""
        print(line, file=sys.stderr, flush=True)

    def begin(self, step: str, seconds: float | None = None) -> None:
        """Print that a step begins."""
        del seconds
        self.log(f"{step} ...")

    def end(self, step: str, result: str) -> None:
        """Print how a step ended."""
        self.log(f"{step}: {result}")


def printed(kind: str, report: msgspec.Struct) -> str:
    """Return a report as the command of that kind prints it."""
    command, made = " ".join(sys.argv), (time.time(), kdelta.__version__)
    return text(Stored(kind, question_of(kind, (report,)), command, *made, (report,)))


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    first, *others = (f"| {' | '.join(line)} |" for line in (heads, *rows))
    return "\n".join((first, "|" + "---|" * len(heads), *others))


def near(found: float, wanted: float, *, rel: float = 0.0, by: float = 0.0) -> bool:
    """Return whether a figure is the wanted one, but for a part of it, or for so much."""
    return abs(found - wanted) <= max(rel * abs(wanted), by)


def marked_processes(name: str, folder: Path) -> list[int]:
    """Return the processes that inherited that variable with that folder."""
    mark = f"{name}={folder}\0".encode()
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (one / "environ").read_bytes():
                found.append(int(one.name))
    return found
