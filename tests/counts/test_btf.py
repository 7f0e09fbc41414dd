# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's description of its own types."""

import pytest

from kdelta.counts.btf import KernelTypes
from kdelta.spec.errors import LabError

from .made_btf import MadeTypes


@pytest.fixture
def types() -> KernelTypes:
    return KernelTypes(MadeTypes().kernel().section())


def field(types: KernelTypes, struct: str, offset: int) -> str:
    number = types.struct(struct)
    assert number is not None
    return types.field_at(number, offset)


def test_a_field_is_named_through_unions_and_typedefs(types: KernelTypes) -> None:
    assert field(types, "dentry", 0) == "d_flags"
    assert field(types, "dentry", 8) == "d_lockref.lock.val.counter"
    assert field(types, "dentry", 11) == "d_lockref.lock.val.counter"
    assert field(types, "dentry", 12) == "d_lockref.count"
    assert field(types, "dentry", 16) == "d_parent"


def test_an_element_of_an_array_is_named_by_its_index(types: KernelTypes) -> None:
    assert field(types, "rq", 8) == "cpu_load[0]"
    assert field(types, "rq", 20) == "cpu_load[3]"


def test_between_and_after_fields_there_is_none(types: KernelTypes) -> None:
    assert field(types, "dentry", 4) == ""
    assert field(types, "rq", 24) == ""
    assert types.struct("nothing") is None


def test_sizes_and_widths(types: KernelTypes) -> None:
    dentry, rq = types.struct("dentry"), types.struct("rq")
    assert dentry
    assert rq
    assert types.size_bytes(dentry) == 24
    assert types.widths_at(dentry, 8) == {4, 8}  # of the lock, and of both as one
    assert types.widths_at(dentry, 10) == set()
    assert types.widths_at(dentry, 16) == {8}
    assert types.widths_at(rq, 12) == {4}


def test_a_variable_has_its_type(types: KernelTypes) -> None:
    assert types.field_at(types.variables["runqueues"], 0) == "nr_running"


@pytest.mark.parametrize("section", [b"", b"\x9f\xeb", b"\x7fELF" + bytes(60)])
def test_what_is_no_description_is_refused(section: bytes) -> None:
    with pytest.raises(LabError, match="description of its types is damaged"):
        KernelTypes(section)
