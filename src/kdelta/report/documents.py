# SPDX-License-Identifier: GPL-2.0-or-later
"""The JSON documents that kdelta prints, and their schemas, in the folder schemas beside this."""

from importlib import resources
from typing import Any

import msgspec

from kdelta.report.ablation_json import JsonAblation
from kdelta.report.bisect_json import JsonBisect
from kdelta.report.calibration_json import JsonCalibration, JsonCheck
from kdelta.report.cpus_json import JsonCpus
from kdelta.report.crossing_json import JsonCrossingReport
from kdelta.report.diff_json import JsonDiff
from kdelta.report.gate_json import JsonGate
from kdelta.report.history_json import JsonHistory
from kdelta.report.json import JsonCompare, JsonRunReport, JsonRuns
from kdelta.report.layout_json import JsonLayout
from kdelta.report.place_json import JsonPlace
from kdelta.report.processes_json import JsonProcessesReport
from kdelta.report.profile_json import JsonProfile
from kdelta.report.series_json import JsonSeries
from kdelta.report.studies_json import JsonStudies

DOCUMENTS: dict[str, type] = {
    "kdelta.ablate/1": JsonAblation,
    "kdelta.bisect/1": JsonBisect,
    "kdelta.calibration-check/1": JsonCheck,
    "kdelta.calibration/1": JsonCalibration,
    "kdelta.compare/2": JsonCompare,
    "kdelta.cpus/1": JsonCpus,
    "kdelta.crossing/1": JsonCrossingReport,
    "kdelta.diff/1": JsonDiff,
    "kdelta.gate/1": JsonGate,
    "kdelta.layout/1": JsonLayout,
    "kdelta.log/1": JsonHistory,
    "kdelta.place/2": JsonPlace,
    "kdelta.processes/1": JsonProcessesReport,
    "kdelta.profile/1": JsonProfile,
    "kdelta.run/1": JsonRunReport,
    "kdelta.runs/1": JsonRuns,
    "kdelta.series/1": JsonSeries,
    "kdelta.studies/1": JsonStudies,
}
"""The documents by the name that they carry in their field `schema`."""


def schema_text(name: str) -> str:
    """The JSON Schema of the document of that name, as its file in the folder schemas has it."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        **msgspec.json.schema(DOCUMENTS[name]),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def shipped_schema(name: str) -> str:
    """The schema document of that name, such as "kdelta.compare/2"."""
    file = resources.files("kdelta.report").joinpath("schemas", schema_file(name))
    return file.read_text("utf-8")


def schema_file(name: str) -> str:
    """The name of that document's file."""
    return name.replace("/", "-") + ".json"
