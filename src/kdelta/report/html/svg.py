# SPDX-License-Identifier: GPL-2.0-or-later
"""Vega's SVG as it is put into a page: coloured by the page's style, small, and silent.

Vega names each bar and tick to screen readers; a chart on a page has one description instead.
"""

import re
import xml.etree.ElementTree as ET

_SVG = "{http://www.w3.org/2000/svg}"
_SILENT = re.compile(r"role|aria-.*|pointer-events|stroke-miterlimit|font-family|version|class")

COLOURS = {
    "#0b5fc0": "base",
    "#c2560b": "other",
    "#b3261e": "slower",
    "#1a7f37": "faster",
    "#57606a": "same",
    "#8250df": "placement",
    "#9a6700": "unresolved",
    "#1f2328": "ink",
    "#d0d7de": "line",
}
"""What charts are drawn in, and the style's names for it (static/page.css has both themes)."""

PAINT = {name: colour for colour, name in COLOURS.items()}


def page_svg(text: str) -> str:
    """The SVG of a chart for a page; ValueError if it is not one."""
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise ValueError(f"no chart: {error}") from error
    _clean(root)
    root.attrib = {"viewBox": root.attrib["viewBox"], "width": root.attrib["width"]}
    root.attrib |= {"aria-hidden": "true", "focusable": "false"}
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _clean(element: ET.Element) -> None:
    element.tag = element.tag.removeprefix(_SVG)
    for name in [name for name in element.attrib if _SILENT.fullmatch(name)]:
        del element.attrib[name]
    classes = []
    for name, letter in (("fill", "f"), ("stroke", "s")):
        if (known := COLOURS.get(element.attrib.get(name, "").lower())) is not None:
            del element.attrib[name]
            classes.append(f"{letter}-{known}")
    if classes:
        element.attrib["class"] = " ".join(classes)
    for name in ("opacity", "stroke-width"):
        if element.attrib.get(name) == "1":
            del element.attrib[name]
    for child in list(element):
        _clean(child)
        if _is_nothing(child):
            element.remove(child)
    while len(element) == 1 and element[0].tag == "g" and not element[0].attrib:
        element[:] = list(element[0])


def _is_nothing(element: ET.Element) -> bool:
    """Whether nothing of an element is seen: Vega draws backgrounds of no size and no colour."""
    if element.attrib.get("display") == "none":
        return True
    if element.tag == "g":
        return len(element) == 0
    painted = {"fill", "stroke", "class"} & element.attrib.keys()
    return element.tag in {"path", "rect"} and not painted
