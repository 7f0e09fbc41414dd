# SPDX-License-Identifier: GPL-2.0-or-later
"""How the configs of two built kernels differ, and what of that reaches code that was executed."""

import msgspec

from kdelta.counts.executed import decode_executed
from kdelta.host.command import quiet
from kdelta.host.files import lab_errors
from kdelta.infer.reach.alive import BuiltSide
from kdelta.infer.reach.reach import NotExcluded, reach_of_units
from kdelta.kernels.config.kconfig import Config, OptionFlip, explain_diff, parse_config
from kdelta.kernels.kbuild.built import DIGEST, BuiltKernel
from kdelta.kernels.kbuild.workbench import workbench
from kdelta.kernels.objects.digest_file import load_digest
from kdelta.lab.lab import EXECUTED, open_store
from kdelta.store.store import Store


class ConfigDifference(msgspec.Struct, frozen=True):
    """Two built kernels and the options whose values differ. `reach` says of an option what it
    gets at, as far as runs of both are there (`known` says whether).
    """

    kernels: tuple[BuiltKernel, BuiltKernel]
    flips: tuple[OptionFlip, ...]
    known: str
    reach: dict[str, str] = {}


def compare_configs(one: BuiltKernel, other: BuiltKernel) -> ConfigDifference:
    """The difference of two kernels' granted configs. Takes seconds, and builds nothing."""
    flips = tuple(explain_diff(_config(one), _config(other)))
    with open_store() as store:
        executed = [_executed(built, store) for built in (one, other)]
    if not all(executed):
        return ConfigDifference(
            (one, other), flips, "what they reach is known after both have been run"
        )
    sides = [
        BuiltSide(load_digest(built.path / DIGEST), names)
        for built, names in zip((one, other), executed, strict=True)
    ]
    with workbench(one, quiet) as bench:
        mentions = bench.mentions()
    found = reach_of_units(
        sides[0], sides[1], {flip.option: [flip.option] for flip in flips}, mentions
    )
    said = {
        name: f"reaches {len(one.alive)} executed of {one.objects} objects"
        if isinstance(one, NotExcluded)
        else f"reaches no executed code ({one.objects} objects)"
        for name, one in found.items()
    }
    return ConfigDifference((one, other), flips, "by what runs of both have executed:", said)


def _config(built: BuiltKernel) -> Config:
    with lab_errors("reading", built.path):
        return parse_config((built.path / built.config).read_text())


def _executed(built: BuiltKernel, store: Store) -> frozenset[str]:
    """The names of all functions that any run of that kernel executed since power-on."""
    names: frozenset[str] = frozenset()
    for run in store.runs_of(built.identity):
        if blob := run.attachments.get(EXECUTED):
            names |= decode_executed(store.get(blob)).names()
    return names
