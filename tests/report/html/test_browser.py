# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages in a real browser: read, sorted, filtered and zoomed by mouse and keys; narrow, dark, on
paper; with names that would do harm.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from kdelta.studies.forms import html as page_of
from tests.report.html.browser import PHONE, SCREEN, chromium, opened
from tests.report.html.pages import (
    EVERY,
    comparison,
    example,
    hostile_comparison,
    hostile_flames,
    two_flames,
)

pytestmark = pytest.mark.outside

OPERATIONS = "#ops-1-1"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a comparison, with flame graphs."""
    file = tmp_path_factory.mktemp("pages") / "compared.html"
    file.write_text(page_of(comparison(), two_flames()), "utf-8")
    return file


def column(table: Locator, number: int) -> list[str]:
    """The cells of a column that are shown, from the top."""
    cells = table.locator(f"tbody tr:visible > :nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


def heading(page: Page, name: str) -> Locator:
    return page.locator(OPERATIONS).get_by_role("columnheader", name=name, exact=True)


def test_a_click_sorts_and_another_the_other_way(browser: Browser, compared: Path) -> None:
    with opened(browser, compared) as page:
        table = page.locator(OPERATIONS)
        before = column(table, 1)
        heading(page, "operation").get_by_role("button").click()
        assert column(table, 1) == sorted(before) != before
        expect(heading(page, "operation")).to_have_attribute("aria-sort", "ascending")
        heading(page, "operation").get_by_role("button").click()
        assert column(table, 1) == sorted(before)[::-1]
        expect(heading(page, "operation")).to_have_attribute("aria-sort", "descending")


def test_keys_sort_and_figures_are_sorted_by_value(browser: Browser, compared: Path) -> None:
    with opened(browser, compared) as page:
        heading(page, "6.1.0").get_by_role("button").focus()
        page.keyboard.press("Enter")
        table = page.locator(OPERATIONS)
        largest = column(table, 1)
        assert largest[:4] == ["mmap-touch-4m", "open-close", "page-fault", "uname"]
        expect(heading(page, "6.1.0")).to_have_attribute("aria-sort", "descending")
        expect(heading(page, "operation")).to_have_attribute("aria-sort", "none")
        page.keyboard.press("Space")
        assert column(table, 1)[-4:] == largest[3::-1]


def test_rows_are_filtered_by_name_and_by_verdict(browser: Browser, compared: Path) -> None:
    with opened(browser, compared) as page:
        table = page.locator(OPERATIONS)
        total = len(column(table, 1))
        tools = page.locator("#operations-1-1 > .tools")
        tools.get_by_label("Find operation").fill("READ-Z")
        assert column(table, 1) == ["read-zero-64k"]
        expect(tools.get_by_role("status")).to_have_text(f"1 of {total} shown")
        tools.get_by_label("Find operation").fill("")
        tools.get_by_label("path").select_option("faster")
        assert sorted(column(table, 1)) == ["getppid", "open-close"]
        heading(page, "operation").get_by_role("button").click()
        assert column(table, 1) == ["getppid", "open-close"]


def test_an_operation_leads_to_its_functions(browser: Browser, compared: Path) -> None:
    with opened(browser, compared) as page:
        page.locator(OPERATIONS).get_by_role("link", name="open-close").click()
        fold = page.locator("details[open]")
        expect(fold).to_have_count(1)
        expect(fold.locator("summary")).to_be_focused()
        expect(fold.get_by_role("table")).to_contain_text("__fget_light")


def tree(page: Page) -> Locator:
    return page.get_by_role("tree")


def frame(page: Page, name: str) -> Locator:
    return tree(page).get_by_role("treeitem", name=re.compile(rf"^{re.escape(name)}[ ;]"))


def test_a_frame_is_zoomed_by_a_click_and_back_by_escape(browser: Browser, compared: Path) -> None:
    with opened(browser, compared) as page:
        expect(tree(page)).to_have_attribute("aria-label", "Flame graph of open-close")
        every_frame = tree(page).get_by_role("treeitem").count()
        frame(page, "do_sys_openat2").click()
        expect(tree(page)).to_have_attribute("data-zoom", "do_sys_openat2")
        expect(frame(page, "ext4_file_open")).to_have_count(0)
        expect(frame(page, "main")).to_have_count(1)
        wide = frame(page, "do_sys_openat2").locator("rect").get_attribute("width")
        assert wide == frame(page, "main").locator("rect").get_attribute("width")
        page.keyboard.press("Escape")
        expect(tree(page)).to_have_attribute("data-zoom", "do_syscall_64")
        page.keyboard.press("Home")
        assert tree(page).get_by_role("treeitem").count() == every_frame
        page.get_by_role("button", name="Show all").click()
        expect(tree(page)).to_have_attribute("data-zoom", "open-close")


def focused(page: Page) -> str:
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    return re.split(r"[ ;]", label)[0]


def test_keys_walk_through_the_frames(browser: Browser, compared: Path) -> None:
    with opened(browser, compared) as page:
        page.get_by_role("button", name="Show all").focus()
        page.keyboard.press("Tab")
        walked = [focused(page)]
        for key in ("Down", "Down", "Down", "Down", "Right", "Left", "Down", "Up", "Up"):
            page.keyboard.press(f"Arrow{key}")
            walked.append(focused(page))
        assert walked == [
            "open-close", "work", "main", "do_syscall_64", "do_sys_openat2", "ext4_file_open",
            "do_sys_openat2", "added", "do_sys_openat2", "do_syscall_64",
        ]  # fmt: skip
        page.keyboard.press("Enter")
        expect(tree(page)).to_have_attribute("data-zoom", "do_syscall_64")
        assert focused(page) == "do_syscall_64"
        assert tree(page).locator('[tabindex="0"]').count() == 1
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('svg')") is None


def test_both_sides_and_the_difference_are_reported(browser: Browser, compared: Path) -> None:
    with opened(browser, compared) as page:
        said = frame(page, "alloc_fd").get_attribute("aria-label")
        assert said == (
            "alloc_fd; base: 40 instructions an iteration (10.7 %), 40 its own; "
            "other: 30 instructions an iteration (6.38 %), 30 its own; "
            "difference: \u221210 (\u221225 %), \u221210 its own"
        )
        expect(frame(page, "added").locator("rect")).to_have_class(re.compile("^more"))
        expect(frame(page, "gone").locator("rect")).to_have_class(re.compile("^less"))
        expect(frame(page, "main").locator("rect")).to_have_class("even")
        expect(frame(page, "do_sys_openat2").locator("text")).to_have_text("+do_sys_openat2")


def test_widths_are_those_of_the_side_that_is_chosen(browser: Browser, compared: Path) -> None:
    with opened(browser, compared) as page:
        page.get_by_role("combobox", name="of", exact=True).select_option("base")
        expect(frame(page, "added")).to_have_count(0)
        expect(frame(page, "gone")).to_have_count(1)
        page.get_by_role("combobox", name="of", exact=True).select_option("other")
        expect(frame(page, "gone")).to_have_count(0)
        whole = float(frame(page, "open-close").locator("rect").get_attribute("width") or 0)
        part = float(frame(page, "do_sys_openat2").locator("rect").get_attribute("width") or 0)
        assert part / whole == pytest.approx(3_600 / 4_700, abs=1e-3)
        page.get_by_role("combobox", name="Width by").select_option("loads")
        assert "loads an iteration" in (frame(page, "open-close").get_attribute("aria-label") or "")


def test_functions_are_found(browser: Browser, compared: Path) -> None:
    with opened(browser, compared) as page:
        page.get_by_label("Find function").fill("alloc_FD")
        expect(frame(page, "alloc_fd")).to_have_class("hit")
        expect(frame(page, "main")).to_have_class("dim")
        expect(page.locator(".flame .status")).to_have_text(
            "1 frame found, with 6.38 % of the instructions of other"
        )
        page.get_by_role("combobox", name="Operation").select_option("getppid")
        expect(tree(page)).to_have_attribute("aria-label", "Flame graph of getppid")


def test_everything_that_can_be_used_has_a_name_and_shows_its_focus(
    browser: Browser, compared: Path
) -> None:
    with opened(browser, compared) as page:
        usable = page.locator("button, input, select, summary, a[href], [role=region], svg[role]")
        for one in usable.all():
            name = one.evaluate(
                "e => (e.getAttribute('aria-label') || e.textContent || e.labels?.[0]?.textContent"
                " || document.getElementById(e.getAttribute('aria-labelledby'))?.textContent"
                " || '').trim()"
            )
            assert name, one.evaluate("e => e.outerHTML.slice(0, 200)")
        button = heading(page, "diff").get_by_role("button")
        button.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        expect(button).to_be_focused()
        assert button.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"


@pytest.mark.parametrize("kind", EVERY)
def test_every_page_opens_and_fits_a_phone(browser: Browser, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_of(example(kind)), "utf-8")
    with opened(browser, file, PHONE) as page:
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        for caption in page.locator("caption span").all():
            box = caption.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= PHONE[0]


def test_a_comparison_fits_a_phone(browser: Browser, compared: Path) -> None:
    with opened(browser, compared, PHONE, has_touch=True, is_mobile=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        # The verdict is seen without scrolling.
        box = page.locator(".answer").first.bounding_box()
        assert box is not None
        assert box["y"] + 100 < PHONE[1]
        frame(page, "do_sys_openat2").tap()
        expect(page.locator(".flame .status")).to_contain_text("do_sys_openat2")
        boxes = page.locator(".tablebox").all()
        assert any(one.evaluate("e => e.scrollWidth > e.clientWidth") for one in boxes)


def test_a_phone_shows_names_verdicts_and_per_cent_without_scrolling(
    browser: Browser, compared: Path
) -> None:
    with opened(browser, compared, PHONE) as page:
        table = page.locator(OPERATIONS)
        box = page.locator(".tablebox", has=table).bounding_box()
        assert box is not None
        heads = table.locator("thead th").all_inner_texts()
        assert [one.strip() for one in heads[:3]] == ["operation", "path", "%"]
        for cell in table.locator("tbody tr > :nth-child(3)").all():
            found = cell.bounding_box()
            assert found is not None
            assert found["x"] + found["width"] <= box["x"] + box["width"] <= PHONE[0]


@pytest.mark.parametrize("size", [PHONE, SCREEN])
@pytest.mark.parametrize("kind", ["compare", "history", "layout", "ablate-cycles"])
def test_charts_are_as_wide_as_their_place_and_nothing_is_cut(
    browser: Browser, tmp_path: Path, kind: str, size: tuple[int, int]
) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_of(example(kind)), "utf-8")
    with opened(browser, file, size) as page:
        for chart in page.locator(".chart:visible").all():
            whole, drawn = chart.bounding_box(), chart.locator(".drawing").bounding_box()
            assert whole is not None
            assert drawn is not None
            assert drawn["width"] == whole["width"]
            for text in chart.locator("text:visible").all():
                box = text.bounding_box()
                assert box is not None
                # As wide as the window at most; a label at the axis' end may stand out by half.
                assert box["x"] >= 0, text.inner_html()
                assert box["x"] + box["width"] <= size[0], text.inner_html()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_both_be_read(browser: Browser, compared: Path, scheme: str) -> None:
    with opened(browser, compared, color_scheme=scheme) as page:
        ratios = page.evaluate(
            """() => {
              const part = (one) => one <= 0.03928 * 255
                ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4;
              const light = (colour) => {
                const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(part);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
              };
              const ground = (e) => {
                for (; e; e = e.parentElement) {
                  const found = getComputedStyle(e).backgroundColor;
                  if (!/, 0\\)$/.test(found)) return found;
                }
              };
              const ratio = (one, other) =>
                (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
              const found = [...document.querySelectorAll(
                'h1, p, td, th, .badge, .chips li, a, figcaption, dt, summary, button')]
                .filter((e) => e.offsetParent && e.textContent.trim())
                .map((e) => [ratio(light(getComputedStyle(e).color), light(ground(e))),
                  e.outerHTML.slice(0, 80)]);
              const ink = light(getComputedStyle(document.querySelector('.flame text')).fill);
              for (const rect of document.querySelectorAll('.flame rect'))
                found.push([ratio(ink, light(getComputedStyle(rect).fill)), rect.outerHTML]);
              return found;
            }"""
        )
        assert len(ratios) > 100
        assert [one for one in ratios if one[0] < 4.5] == []
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")


def test_on_paper_all_is_open_and_nothing_is_cut(browser: Browser, compared: Path) -> None:
    with opened(browser, compared, color_scheme="dark") as page:
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        for box in page.locator(".tablebox").all():
            assert box.evaluate("e => getComputedStyle(e).overflowX") == "visible"
        expect(page.locator(".tools").first).to_be_hidden()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0
        pdf = page.pdf(format="A4", prefer_css_page_size=True)
        assert pdf.startswith(b"%PDF-")


def test_names_do_no_harm(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "hostile.html"
    file.write_text(page_of(hostile_comparison(), hostile_flames()), "utf-8")
    with opened(browser, file) as page:
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        for option in page.get_by_role("combobox", name="Operation").locator("option").all():
            page.get_by_role("combobox", name="Operation").select_option(
                option.get_attribute("value")
            )
        for item in tree(page).get_by_role("treeitem").all():
            item.hover()
        page.get_by_label("Find function").fill("<script>")
        expect(page.locator(".flame .hit").first).to_be_visible()
        assert page.locator("script").count() == 4
        assert page.locator("img, svg[onload]").count() == 0


def test_what_is_not_the_pages_own_does_not_run(browser: Browser, compared: Path) -> None:
    # Each is refused by the policy, which says so on the console: so no `opened` here.
    made = browser.new_context(offline=True)
    page = made.new_page()
    refused: list[str] = []
    page.on("console", lambda line: refused.append(line.text))
    page.goto(compared.as_uri())
    page.evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = 'window.ran = true';
          document.body.append(script);
          const image = document.createElement('img');
          image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=';
          document.body.append(image);
          document.body.insertAdjacentHTML('beforeend', '<b onclick="window.ran = true">x</b>');
          document.body.lastElementChild.click();
          return fetch('https://example.invalid/').catch(() => {});
        }"""
    )
    assert page.evaluate("window.ran") is None
    made.close()
    directives = {word for line in refused for word in re.findall(r"(\w+-src)\b", line)}
    assert {"script-src", "default-src"} <= directives
    assert len(refused) >= 4


def test_without_scripts_it_can_be_read(browser: Browser, compared: Path) -> None:
    made = browser.new_context(java_script_enabled=False, offline=True)
    page = made.new_page()
    page.goto(compared.as_uri())
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(f"{OPERATIONS} tbody tr")).to_have_count(10)
    expect(page.get_by_text("scripts are off")).to_be_visible()
    made.close()
