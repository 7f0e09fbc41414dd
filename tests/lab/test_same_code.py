# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether two kernels execute the same code in a region."""

from collections.abc import Mapping

import msgspec
import pytest

from kdelta.infer.cycles.placement_model import CodeChange
from kdelta.kernels.objects.digest import Digest, ObjectDigest
from kdelta.kernels.objects.objects import CodePiece as ObjectCode
from kdelta.measures.path.same_code import KernelCode, codes_of
from kdelta.measures.path.unchanged import unchanged_regions
from tests.synthetic import interrupts, own, region, run, user

BODIES = {
    "fs/open.o": {"do_open": 1, "helper": 2},
    "fs/read.o": {"vfs_read": 3, "helper": 4},
    "arch/entry.o": {"entry": 5},
    "arch/vdso/image.o": {},
    "drivers/my-net.o": {"probe": 6},
}
COUNTS = run(
    region("open", {own("do_open"): 9, own("entry_label"): 3, user("main"): 4}),
    region("helped", {own("helper"): 9, interrupts("tick"): 3}),
    region("module", {own("probe", "[my_net]"): 9}),
    region("strange", {own("probe", "[other_net]"): 9}),
    region("vdso", {user("__vdso_time", "[vdso]"): 9}),
    region("unknown", {user("?", "[unknown]"): 9}),
)
REGIONS = ("open", "helped", "module", "strange", "vdso", "unknown")


def digest(bodies: Mapping[str, Mapping[str, int]] = BODIES, **changed: int) -> Digest:
    """A kernel's objects; `changed` are other hashes, of a function or of an object's data."""
    objects = {}
    for path, functions in bodies.items():
        name = path.rpartition("/")[2].partition(".")[0]
        objects[path] = ObjectDigest(
            path=path,
            source=path.replace(".o", ".c"),
            module="drivers/my-net.ko" if "net" in path else "",
            options=frozenset(),
            generated=frozenset(),
            is_assembler="entry" in path,
            is_opaque=False,
            functions={one: _code(changed.get(one, value)) for one, value in functions.items()},
            data={"table": _code(changed.get(f"data_{name}", 0))},
            collected={},
        )
    return Digest(objects, {})


def _code(value: int) -> ObjectCode:
    return ObjectCode(value, 16, ".text", ())


def known(identity: str, held: Digest | None, workload: str = "w") -> KernelCode:
    return KernelCode(identity, held, COUNTS, workload)


def different(changed: dict[str, int], workload: str = "w") -> set[str]:
    """The regions whose code is not the same, when that has changed and some data, too."""
    other = digest(BODIES, **{"data_read": 7, **changed})
    codes = codes_of(known("a", digest()), known("b", other, workload))
    assert tuple(codes) == REGIONS
    assert CodeChange.RELINKED not in codes.values()
    return {name for name, code in codes.items() if code is CodeChange.DIFFERENT}


def test_the_same_objects_linked_again() -> None:
    codes = codes_of(known("a", digest()), known("b", digest(probe=9)))
    assert codes == dict.fromkeys(REGIONS, CodeChange.RELINKED)


def test_the_same_kernel_of_which_no_digest_is_kept() -> None:
    assert set(codes_of(known("a", None), known("a", None)).values()) == {CodeChange.RELINKED}


def test_a_kernel_of_which_nothing_is_known() -> None:
    for digests in ((None, None), (digest(), None), (None, digest())):
        codes = codes_of(known("a", digests[0]), known("b", digests[1]))
        assert set(codes.values()) == {CodeChange.DIFFERENT}


def test_one_kernel_booted_with_other_parameters_is_not_only_linked_again() -> None:
    plain = known("a", digest())
    changed = KernelCode("b", digest(), COUNTS, "w", ("mitigations=off",))
    assert set(codes_of(plain, changed).values()) == {CodeChange.DIFFERENT}
    assert set(codes_of(changed, changed).values()) == {CodeChange.RELINKED}


ALWAYS = {"strange", "unknown"}


@pytest.mark.parametrize(
    ("changed", "regions"),
    [
        ({}, set()),
        ({"do_open": 9}, {"open"}),
        ({"vfs_read": 9}, set()),
        ({"helper": 9}, {"helped"}),
        ({"probe": 9}, {"module"}),
        ({"entry": 9}, {"open"}),
        ({"data_entry": 9}, {"open"}),
        ({"data_image": 9}, {"vdso"}),
    ],
)
def test_one_change(changed: dict[str, int], regions: set[str]) -> None:
    assert different(changed) == regions | ALWAYS


def test_another_program() -> None:
    assert different({}, "v") == {"open"} | ALWAYS


def test_a_function_that_only_one_kernel_executes() -> None:
    more = run(*COUNTS.regions[1:], region("open", {own("do_open"): 9, own("vfs_read"): 3}))
    other = KernelCode("b", digest(vfs_read=9), more, "w")
    assert codes_of(known("a", digest()), other)["open"] is CodeChange.DIFFERENT
    assert codes_of(other, known("a", digest()))["open"] is CodeChange.DIFFERENT


READS: dict[str, tuple[dict[str, tuple[str, ...]], dict[str, tuple[int, tuple[str, ...]]]]] = {
    "fs/open.o": ({"do_open": (":hits", "limit")}, {":hits": (0, ()), ":ops": (0, (":hits",))}),
    "fs/read.o": ({"vfs_read": (":ops",), "helper": ()}, {":ops": (0, ("table",))}),
    "mm/data.o": ({}, {"limit": (0, ()), "table": (0, ("limit",))}),
}
"""By object what functions and variables refer to; variables with what they begin with."""


def reading(**changed: int) -> Digest:
    """A kernel whose functions are the same; `changed` are other contents of variables."""
    objects = digest({path: {} for path in READS}).objects
    for path, (functions, variables) in READS.items():
        data = {
            name: ObjectCode(changed.get(name.lstrip(":"), value), 8, ".data", refs)
            for name, (value, refs) in variables.items()
        }
        code = {name: ObjectCode(1, 16, ".text", refs) for name, refs in functions.items()}
        objects[path] = msgspec.structs.replace(objects[path], functions=code, data=data)
    return Digest(objects, {})


READ_COUNTS = run(
    region("open", {own("do_open"): 9}),
    region("read", {own("vfs_read"): 9}),
    region("help", {own("helper"): 9}),
)


@pytest.mark.parametrize(
    ("changed", "regions"),
    [
        ({}, {"open", "read", "help"}),
        ({"hits": 1}, {"read", "help"}),
        ({"table": 1}, {"open", "help"}),
        ({"limit": 1}, {"help"}),
        ({"new": 1}, {"open", "read", "help"}),
    ],
)
def test_regions_without_a_change_refer_to_no_data_that_differs(
    changed: dict[str, int], regions: set[str]
) -> None:
    base, other = (
        KernelCode(who, held, READ_COUNTS, "w")
        for who, held in (("a", reading()), ("b", reading(**changed)))
    )
    assert set(unchanged_regions(base, other)) == regions
    assert set(unchanged_regions(other, base)) == regions


def test_nothing_is_without_a_change_where_parameters_or_code_differ_or_are_not_known() -> None:
    base = KernelCode("a", reading(), READ_COUNTS, "w")
    other = KernelCode("b", reading(), READ_COUNTS, "w", ("quiet",))
    assert unchanged_regions(base, other) == ()
    assert unchanged_regions(base, KernelCode("b", None, READ_COUNTS, "w")) == ()
    changed = digest({**BODIES, "fs/open.o": {"do_open": 2, "helper": 2}})
    codes = KernelCode("a", digest(), COUNTS, "w"), KernelCode("b", changed, COUNTS, "w")
    assert set(unchanged_regions(*codes)) == set(REGIONS) - ALWAYS - {"open"}
