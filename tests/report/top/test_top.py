# SPDX-License-Identifier: GPL-2.0-or-later
"""Looking through functions: what each key does, and what is on the screen."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.profiles.calls import merged_calls
from kdelta.infer.profiles.profile import Selection
from kdelta.studies.profile.top import Functions, Top, TopLine, Way
from kdelta.studies.profile.top_screen import Style, page_of, screen, table
from tests.profiles import profile_of
from tests.report.exports.example import OTHER, READ, inclusive, own
from tests.report.top.looked_at import TITLE, top

READ_OWN = {stack: insns for stack, insns in READ.items() if stack[0] != "irq_entry"}
WHOLE = sum(READ_OWN.values()) + sum(OTHER.values())


def pressed(one: Top, *keys: str) -> Top:
    for key in keys:
        one.press(key)
    return one


def names(one: Top) -> list[str]:
    return ["  " * (len(line.path) - 1) + line.name for line in one.lines]


def line(one: Top, name: str) -> TopLine:
    return next(line for line in one.lines if line.name == name)


def text(one: Top, columns: int = 80, lines: int = 24) -> list[str]:
    return [row.text for row in screen(one, TITLE, columns, lines)]


def test_functions_are_listed_by_inclusive_figure() -> None:
    one = top()
    total, self = inclusive([READ_OWN, OTHER]), own([READ_OWN, OTHER])
    assert names(one)[:4] == ["[work]", "main work", "do_syscall_64", "vfs_read"]
    for name in ("do_syscall_64", "vfs_read", "walk"):
        assert (line(one, name).inclusive, line(one, name).own) == (total[name], self[name])
    assert sum(line.own or 0 for line in one.lines) == one.functions.total == WHOLE


@pytest.mark.parametrize(
    ("key", "first"),
    [
        ("o", "hook [nf nat]"),
        ("c", "walk"),
        ("n", "[work]"),
        ("i", "[work]"),
        (">", "hook [nf nat]"),
    ],
)
def test_they_are_sorted_by_a_key(key: str, first: str) -> None:
    assert names(pressed(top(), key))[0] == first


def test_the_order_goes_round() -> None:
    one = pressed(top(), ">", ">", ">")
    assert one.state.order == "name"
    assert pressed(one, ">").state.order == "inclusive"
    assert pressed(one, "<").state.order == "name"


def test_an_opened_function_shows_what_it_called() -> None:
    one = pressed(top(), "down", "enter", "down", "enter")
    assert names(one)[:4] == ["[work]", "main work", "  do_syscall_64", "    vfs_read"]
    syscall, main = one.lines[2], one.lines[1]
    assert main.inclusive == (main.own or 0) + syscall.inclusive
    assert names(pressed(one, "enter"))[3] == "do_syscall_64"
    closed = pressed(one, "left", "left")
    assert closed.state.at == closed.lines[1].path
    assert names(pressed(closed, "left"))[2] == "do_syscall_64"


def test_below_what_calls_itself_is_what_was_done_on_that_path() -> None:
    one = top()
    while one.lines[one.cursor].name != "walk":
        one.press("down")
    pressed(one, "enter", "down", "enter", "down", "enter", "down", "enter")
    start = names(one).index("walk")
    found = [(each.name, each.inclusive, each.own) for each in one.lines[start : start + 4]]
    assert found == [
        ("walk", 1037, 37),
        ("walk", 1034, 4),
        ("hook [nf nat]", 1030, 1000),
        ("walk", 30, 30),
    ]


def test_the_other_way_shows_who_called_it() -> None:
    one = pressed(top(), "down", "down", "down", "u", "enter", "down", "enter")
    assert one.state.way is Way.CALLERS
    at = names(one).index("vfs_read")
    assert names(one)[at : at + 3] == ["vfs_read", "  do_syscall_64", "    main work"]
    caller = one.lines[at + 1]
    assert caller.inclusive == one.lines[at].inclusive
    assert caller.own is None
    assert not any(each.is_open for each in pressed(one, "u").lines)


def test_turning_round_goes_to_the_function_that_was_looked_at() -> None:
    one = pressed(top(), "down", "enter", "down", "u")
    assert one.lines[one.cursor].path == (("kernel", "do_syscall_64"),)


def test_a_filter_keeps_functions_with_these_words() -> None:
    one = pressed(top(), "/", *"VFS")
    assert names(one) == ["vfs_read"]
    assert "filter: VFS_" in text(one)[-1]
    # While they are typed, letters are no commands.
    assert names(pressed(one, "backspace", "backspace", "backspace", *"wqu")) == []
    assert "no function's name has 'wqu'" in text(one)[2]
    assert not one.state.done
    assert names(pressed(one, "escape")) == names(top())
    kept = pressed(top(), "/", *"walk", "enter")
    assert names(kept) == ["walk"]
    assert names(pressed(kept, "escape")) == names(top())


def test_a_region_and_others_work_are_chosen() -> None:
    one = pressed(top(), "r")
    assert one.functions.total == sum(READ_OWN.values())
    assert pressed(one, "r").functions.total == sum(OTHER.values())
    assert pressed(one, "R", "R").functions.total == WHOLE
    everyone = pressed(top(), "w")
    assert everyone.functions.total == sum(READ.values()) + sum(OTHER.values())
    assert "all work" in text(everyone)[0]


def test_another_figure_is_chosen() -> None:
    one = pressed(top(), "m")
    assert "loads" in text(one)[0]
    assert line(one, "do_syscall_64").own == 102
    assert line(one, "vfs_read").own == 0
    assert pressed(one, "M").functions.total == WHOLE


def test_the_cursor_stays_in_the_list_and_on_its_function() -> None:
    one = pressed(top(), "up", "up")
    assert one.cursor == 0
    assert pressed(one, "end").cursor == len(one.lines) - 1
    assert pressed(one, "down").cursor == len(one.lines) - 1
    name = one.lines[one.cursor].name
    assert pressed(one, "n").lines[one.cursor].name == name
    assert pressed(one, "home").cursor == 0
    one.press("pagedown", 3)
    assert one.cursor == 3
    one.press("pageup", 3)
    assert one.cursor == 0


def test_the_screen_fits_and_says_what_is_looked_at() -> None:
    rows = screen(top(), TITLE, 80, 24)
    assert len(rows) == 24
    assert all(len(row.text) <= 80 for row in rows)
    assert rows[0].text == f"all regions, own work: {WHOLE} insns  by inclusive  {TITLE}"
    assert [row.style for row in rows].count(Style.CURSOR) == 1
    assert rows[2].text.split() == [str(WHOLE), "100.0%", "0", "0.0%", "-", "+", "[work]"]
    assert rows[-1].text.startswith("?:help")


def test_names_are_cut_and_never_steer_the_terminal() -> None:
    one = pressed(top(), "r", "r")
    assert "\x1b" not in "".join(text(one))
    narrow = text(one, 50, 10)
    assert len(narrow) == 10
    assert max(len(each) for each in narrow) == 50


def test_long_lists_go_by_pages() -> None:
    profile = profile_of({(f"f{n:02}",): 100 - n for n in range(40)})
    calls = merged_calls([profile], Selection())
    one = Top(top().choices, lambda _: Functions(calls))
    assert "f05" in text(one, 80, 10)[-2]
    down = pressed(one, *["down"] * page_of(10))
    assert "f05" not in "".join(text(down, 80, 10))
    assert "f06" in text(down, 80, 10)[2]
    # The page stays while the cursor is on it.
    assert "f06" in text(pressed(down, "down"), 80, 10)[2]


def test_a_screen_that_became_too_small_says_so() -> None:
    assert text(top(), 20, 3) == ["needs 50x8"]
    assert text(top(), 4, 3) == ["need"]
    assert text(top(), 80, 3) == ["needs 50x8"]


def test_help_is_shown_until_the_next_key() -> None:
    one = pressed(top(), "?")
    assert any("callers instead of callees" in row for row in text(one))
    assert not any("callers instead" in row for row in text(pressed(one, "q")))
    assert not one.state.done
    assert pressed(one, "q").state.done


KEYS = st.lists(
    st.sampled_from([*"iocn<>mMrRwu/?kj gGh+-av", "up", "down", "enter", "left", "right", "escape"])
)


@given(KEYS, st.integers(1, 120), st.integers(1, 40))
def test_no_keys_break_it(keys: Iterable[str], columns: int, lines: int) -> None:
    one = top()
    for key in keys:
        one.press(key, page_of(lines))
        rows = screen(one, TITLE, columns, lines)
        assert len(rows) <= lines
        assert all(len(row.text) <= columns for row in rows)


def test_the_table_adds_up() -> None:
    rows = table(top().functions, TITLE, 4).splitlines()
    assert rows[0] == TITLE
    assert [row.split()[-1] for row in rows[3:7]] == ["[work]", "work", "do_syscall_64", "vfs_read"]
    shown = sum(int(row.split()[2]) for row in rows[3:7])
    assert rows[7].split()[2:] == ["3", "more", "functions"]
    assert shown + int(rows[7].split()[0]) == WHOLE
    assert rows[8].split() == [str(WHOLE), "100.0%", str(WHOLE), "100.0%", "total"]
