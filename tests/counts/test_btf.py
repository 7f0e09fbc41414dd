# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's description of its own types."""

import pytest

from kdelta.counts.btf import KernelTypes
from kdelta.spec.errors import LabError

from .made_btf import UNION, MadeTypes


@pytest.fixture
def types() -> KernelTypes:
    return KernelTypes(MadeTypes().kernel().section())


def field(types: KernelTypes, struct: str, offset: int) -> str:
    number = types.struct(struct)
    assert number is not None
    (found,) = types.fields_at(number, offset)
    return found.name


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
    (found,) = types.fields_at(types.variables["runqueues"], 0)
    assert found.name == "nr_running"


def test_members_of_a_union_of_several_words_are_all_named() -> None:
    made = MadeTypes()
    u32, u64 = made.number("unsigned int", 4), made.number("unsigned long", 8)
    head = made.struct("rcu_head", 16, ("next", u64, 0), ("func", u64, 8))
    one = made.struct("", 16, ("vm_start", u64, 0), ("vm_end", u64, 8))
    either = made.struct("", 16, ("", one, 0), ("vm_rcu", head, 0), ("bits", u32, 0), kind=UNION)
    made.struct("area", 24, ("flags", u64, 0), ("", either, 8))
    types = KernelTypes(made.section())
    area = types.struct("area")
    assert area
    names = [[(one.name, one.size_bytes) for one in types.fields_at(area, at)] for at in (8, 16)]
    assert names == [
        [("vm_start", 8), ("vm_rcu.next", 8), ("bits", 4)],
        [("vm_end", 8), ("vm_rcu.func", 8)],
    ]


@pytest.mark.parametrize("section", [b"", b"\x9f\xeb", b"\x7fELF" + bytes(60)])
def test_what_is_no_description_is_refused(section: bytes) -> None:
    with pytest.raises(LabError, match="description of its types is damaged"):
        KernelTypes(section)
