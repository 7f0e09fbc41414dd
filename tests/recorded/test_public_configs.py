# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/public-configs recorded: each public config was taken for what it is."""

import re

import pytest
from public_configs import RECORDS, ConfigRecord, recorded


@pytest.mark.parametrize("record", recorded(), ids=lambda one: f"{one.repository}/{one.path}")
def test_a_public_config_is_taken_for_what_it_is(record: ConfigRecord) -> None:
    assert record.taken_for == record.right
    assert re.fullmatch(r"[0-9a-f]{40}", record.commit)
    if record.right != "refused":
        assert f" {record.options} option" in record.said


def test_public_configs_are_of_many_projects_and_of_each_kind() -> None:
    records = recorded()
    assert len({one.repository for one in records}) >= 10
    kinds = {(one.change, one.right) for one in records}
    assert kinds >= {("+FILE", "base"), ("+FILE", "fragment"), ("+base:FILE", "base")}
    readme = (RECORDS.parent / "README.md").read_text()
    assert all(f"`{one.path}`" in readme for one in records)
