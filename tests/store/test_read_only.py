# SPDX-License-Identifier: GPL-2.0-or-later
"""A store that belongs to another user, or lies on a medium that cannot be written."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from tests.store.test_store import COUNTS, new


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that root makes and another user may only read; the test is that user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        if not os.getuid():
            os.seteuid(0)
        folder.chmod(0o755)


def test_store_read_only_is_read(read_only: Path) -> None:
    with Store.open(read_only) as store:
        run_id = store.start_run(new())
        made = store.finish_run(run_id, RunStatus.OK, counts=COUNTS)
    read_only.chmod(0o555)
    if not os.getuid():
        os.seteuid(65534)
    with Store.open(read_only) as store:
        assert store.runs() == [made]
        assert store.counts(made) == COUNTS
        with pytest.raises(LabError, match="readonly") as caught:
            store.start_run(new())
    assert "make it writable" in caught.value.hint
