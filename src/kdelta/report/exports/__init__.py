# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles in the formats of existing tools, one module a format; docs/exports.md."""

from collections.abc import Mapping

from kdelta.report.exports.callgrind import CALLGRIND
from kdelta.report.exports.folded import FOLDED
from kdelta.report.exports.model import Export, Naming, unknown
from kdelta.report.exports.perf_script import PERF_SCRIPT
from kdelta.report.exports.pprof import PPROF
from kdelta.report.exports.speedscope import SPEEDSCOPE

__all__ = ["EXPORTS", "Export", "Naming", "export_of"]

EXPORTS: Mapping[str, Export] = {
    export.name: export for export in (CALLGRIND, PPROF, FOLDED, SPEEDSCOPE, PERF_SCRIPT)
}
"""The formats by name."""


def export_of(name: str) -> Export:
    """The format of that name; UserError, with the nearest, if there is none."""
    if name not in EXPORTS:
        raise unknown("export format", name, tuple(EXPORTS))
    return EXPORTS[name]
