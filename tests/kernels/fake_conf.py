# SPDX-License-Identifier: GPL-2.0-or-later
"""A Kconfig file of few options, and what conf would make of a config there, in some lines."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from kdelta.kernels.config.kconfig_files import Kconfig, read_kconfig

Term = tuple[tuple[str, bool], ...]
"""Options that must all be on (True) or off."""


class FakeOption(msgspec.Struct, frozen=True):
    """A bool. `depends` are alternatives, on options before it; it selects options after it.
    Neighbours of the same `choice` are the members of one.
    """

    name: str
    depends: tuple[Term, ...] = ()
    default: bool = False
    prompt: bool = True
    selects: tuple[str, ...] = ()
    choice: int = 0


class FakeConf:
    """Counts how often it was asked."""

    def __init__(self, options: tuple[FakeOption, ...]) -> None:
        self.options = options
        self.calls = 0

    def __call__(self, asked: Mapping[str, str]) -> dict[str, str]:
        self.calls += 1
        on: dict[str, bool] = {}
        granted = {}
        selected: set[str] = set()
        for option in self.options:
            name = option.name
            exists = not option.depends or any(
                all(on[other] is wanted for other, wanted in term) for term in option.depends
            )
            value = option.default
            if option.prompt:
                value = {"y": True, "n": False}.get(asked.get(f"CONFIG_{name}", ""), value)
            if option.choice:
                value = name == self._chosen(option.choice, asked)
            on[name] = (exists and value) or name in selected
            if on[name]:
                selected.update(option.selects)
            if on[name] or (option.prompt and exists):
                granted[f"CONFIG_{name}"] = "y" if on[name] else "n"
        return granted

    def _chosen(self, choice: int, asked: Mapping[str, str]) -> str:
        members = [option.name for option in self.options if option.choice == choice]
        order = [name for name in asked if asked[name] == "y"]
        wanted = [name for name in members if f"CONFIG_{name}" in order]
        return max(wanted, key=lambda name: order.index(f"CONFIG_{name}"), default=members[0])

    def kconfig(self, folder: Path) -> Kconfig:
        """The same, as the reader of Kconfig files sees it."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "Kconfig").write_text(self.text())
        return read_kconfig(folder)

    def text(self) -> str:
        lines = []
        open_choice = 0
        for option in self.options:
            if option.choice != open_choice:
                lines += ["endchoice"] if open_choice else []
                lines += ["choice", '\tprompt "one of them"'] if option.choice else []
                open_choice = option.choice
            lines += self._entry(option)
        return "\n".join([*lines, *(["endchoice"] if open_choice else []), ""])

    def _entry(self, option: FakeOption) -> list[str]:
        lines = [f"config {option.name}"]
        lines.append(f'\tbool "{option.name} if you like"' if option.prompt else "\tbool")
        if option.depends:
            terms = (
                " && ".join(name if wanted else f"!{name}" for name, wanted in term)
                for term in option.depends
            )
            lines.append(f"\tdepends on {' || '.join(f'({term})' for term in terms)}")
        lines += ["\tdefault y"] if option.default else []
        return lines + [f"\tselect {name}" for name in option.selects]
