#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Converts recorded JSON documents of number 1 to number 2, in which JSON is the model as it is.

    scripts/convert_documents.py docs/cases/*/*.json

It rewrites the documents of ablate, crossing, diff and series among these files. Of a study that is
still in a store, `kdelta report ID --format json` makes the new document.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kdelta.infer.effects.estimate import MEAN
from kdelta.studies.documents import DOCUMENTS

Entry = dict[str, Any]

RENAMED = {
    "arm": "name",
    "arms": "variants",
    "fate": "outcome",
    "units": "option_groups",
    "unlike": "mismatches",
}
"""The present names of fields; no region, function or option is called like one of before."""


def without(entry: Entry, *names: str) -> Entry:
    """Return the entry without those of its fields that follow from others."""
    return {name: value for name, value in entry.items() if name not in names}


def reported_run(run: Entry) -> Entry:
    """Return a run, with what the report adds to it."""
    added = {"from_store": run["from_store"], "console_tail": run["console_tail"]}
    return {"run": {**without(run, *added), "alive": False}, **added}


def side(kernel: Entry) -> Entry:
    """Return a kernel with its runs."""
    return {**kernel, "runs": [reported_run(run) for run in kernel["runs"]]}


def region(old: Entry) -> Entry:
    """Return a region of a search."""
    return {**without(old, "adds_up", "sums", "varies", "steady"), "widest": old["varies"]}


def searched(old: Entry, parts: list[Entry]) -> Entry:
    """Return what ablate and series have in common. Means that runs know are entered among the
    effects of each part.
    """
    new = without(old, "before", "after", "means")
    new["ends"] = [side(old["before"]), side(old["after"])]
    new["regions"] = [region(one) for one in old["regions"]]
    if old["means"]["sums"] == "adds up":
        for part in parts:
            part["effects"] |= {MEAN: part["mean"]} if part["mean"] else {}
        base = mean_of(
            [one["before"] for one in old["regions"] if one["steady"] and not one["rate"]]
        )
        new["mean"] = {**without(old["means"], "regions", "sums"), "base": base, "widest": base}
    for part in parts:
        del part["mean"], part["seen"]
    return new


def mean_of(costs: list[Entry]) -> Entry:
    """Return the mean over regions of what each costs, in per cent of itself."""
    ends = {
        end: sum(100 * cost[end] / cost["value"] for cost in costs) / len(costs)
        for end in ("value", "low", "high")
    }
    return {**ends, "n": min(cost["n"] for cost in costs)}


def ablate(old: Entry) -> Entry:
    """Return an ablation; those that are recorded have no model cycles."""
    return {**searched(old, old["option_groups"]), "cycles": {}}


def series(old: Entry) -> Entry:
    """Return a series of patches."""
    new = without(searched(old, old["patches"]), "patches", "held")
    answers = ("name", "outcome", "effects", "left_out", "alone")
    new["rows"] = [
        {
            **without(patch, *answers),
            "answer": {name: patch[name] for name in answers} | {"text": patch["why"]},
        }
        for patch in old["patches"]
    ]
    return new


def crossing(old: Entry) -> Entry:
    """Return a crossing into the kernel; those that are recorded have no model cycles."""
    names = ("operations", "total", "left_out", "assumed", "unpriced")
    new = without(old, *names)
    new["found"] = {name: old[name] for name in names}
    for one in (*old["operations"], old["total"]):
        for share in (*one["shares"], one["whole"]):
            share["kernel"] = share.pop("system")
        for cost in one["variants"]:
            cost["kernel"] = cost.pop("system")
            cost["amounts"] = {
                "insns": cost["insns"]["value"],
                "string_bytes": cost.pop("string_bytes"),
                **cost.pop("specials"),
            }
    for variant in new["variants"]:
        variant["chose"] = variant.pop("vulnerabilities")
        variant["side"] = side(variant["side"])
    return new


def keys(symbols: list[Entry]) -> list[list[str]]:
    """Return functions by origin and name."""
    return [[one["origin"], one["name"]] for one in symbols]


def source(line: Entry, number: int | None) -> Entry | None:
    """Return a source line of one side."""
    names = ("origin", "file", "function")
    return None if number is None else {name: line[name] for name in names} | {"line": number}


def insn(old: Entry | None) -> Entry | None:
    """Return an instruction of one side."""
    return old and {
        "address": int(old["address"], 16),
        "size": old["bytes"],
        "count": old["executed"],
        "text": old["text"],
        "place": [old["file"], old["line"]] if old["file"] else None,
    }


def line_of(old: Entry) -> Entry:
    """Return a function on both sides."""
    match = {name: old[name] for name in ("origin", "name", "how")}
    match |= {"a": keys(old["a_symbols"]), "b": keys(old["b_symbols"])}
    return {"match": match, "a": old["a"], "b": old["b"]}


def source_change(old: Entry) -> Entry:
    """Return a source line on both sides."""
    sides = {name: source(old, old[name]) for name in ("a_line", "b_line")}
    return sides | {name: old[name] for name in ("a", "b", "text")}


def side_by_side(old: Entry) -> Entry:
    """Return a function by instruction."""
    pairs = [{**pair, "a": insn(pair["a"]), "b": insn(pair["b"])} for pair in old["pairs"]]
    return {"name": old["name"], "names": [old["name"]] * 2, "pairs": pairs}


def difference(old: Entry) -> Entry:
    """Return a difference. It keeps `insns`, of the regions by part and context, since the regions'
    own functions were not recorded.
    """
    views = ("calls", "source", "annotated", "hints")
    new = without(old, "contexts", "parts", "total", "regions", *views)
    for name in ("a", "b"):
        new[name] = reported_run(old[name])
        new[f"{name}_regions"] = [
            {"name": one["name"], "iterations": one[f"{name}_iterations"], "lines": []}
            for one in old["regions"]
        ]
    new["selection"] = {"contexts": old["contexts"], "parts": old["parts"]}
    new["lines"] = [line_of(one) for one in old["lines"]]
    new["views"] = {
        "changes": [
            {**without(one, "origin", "name"), "key": [one["origin"], one["name"]]}
            for one in old["calls"]
        ],
        "lines": [source_change(one) for one in old["source"]],
        "annotated": [side_by_side(one) for one in old["annotated"]],
        "hints": old["hints"],
    }
    return new


CONVERTED: dict[str, Callable[[Entry], Entry]] = {
    "kdelta.ablate/1": ablate,
    "kdelta.crossing/1": crossing,
    "kdelta.diff/1": difference,
    "kdelta.series/1": series,
}


def read(entry: Entry) -> Entry:
    """Return an object as it was read with its fields' present names, an estimate without whether
    it is exact.
    """
    now = {RENAMED.get(name, name): value for name, value in entry.items()}
    return without(now, "exact") if "exact" in now and "low" in now else now


def written(document: Entry, *, indented: bool) -> str:
    """Return a document as JSON: indented, or with a line for each row of its tables."""
    if indented:
        return json.dumps(document, indent=1, ensure_ascii=False)

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    entries = [
        f"{line(key)}: [\n" + ",\n".join(map(line, value)) + "]"
        if isinstance(value, list) and isinstance(next(iter(value), None), dict)
        else f"{line(key)}: {line(value)}"
        for key, value in document.items()
    ]
    return "{\n" + ",\n".join(entries) + "\n}"


def main() -> None:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", type=Path, nargs="+")
    for file in parser.parse_args().files:
        text = file.read_text()
        old = json.loads(text, object_hook=read)
        name = old.get("schema", "") if isinstance(old, dict) else ""
        if name not in CONVERTED:
            continue
        new = {"schema": name.replace("/1", "/2"), **without(CONVERTED[name](old), "schema")}
        assert new["schema"] in DOCUMENTS
        file.write_text(written(new, indented=text.startswith("{\n ")) + "\n")
        print(file)


if __name__ == "__main__":
    main()
