# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that a kernel can switch at boot, and the words for it; switches.toml has them."""

import functools
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Literal

import msgspec

Share = Literal["default", "part"]
"""What of an option a switch shows: all that it decides is a default, or only a part of it."""


class _Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    option: str
    words: dict[str, str]
    share: Share
    needs: tuple[str, ...] = ()


class _SwitchFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    switch: tuple[_Switch, ...]


class BootSwitch(msgspec.Struct, frozen=True):
    """What a kernel's command line needs so that it behaves as if some options had other values.

    `options` are those that it switches; `share` is "default" if nothing else depends on them.
    """

    words: str
    options: tuple[str, ...]
    share: Share


@functools.cache
def _known() -> dict[str, _Switch]:
    text = resources.files(__package__).joinpath("switches.toml").read_bytes()
    return {one.option: one for one in msgspec.toml.decode(text, type=_SwitchFile).switch}


def boot_switch(flips: Iterable[tuple[str, str]], config: Mapping[str, str]) -> BootSwitch | None:
    """The switch that gives a kernel of that config the other values of some options.

    flips: (option, its value after the flip); options of which no switch is known are passed over.
    config: option -> value of the kernel that will be booted. None when nothing can be switched.
    """
    wanted = dict(flips)
    switches = {
        option: known
        for option, value in wanted.items()
        if (known := _known().get(option)) is not None
        and value in known.words
        and all(config.get(needed) == "y" for needed in known.needs)
    }
    if not switches:
        return None
    words = dict.fromkeys(known.words[wanted[option]] for option, known in switches.items())
    # An option without a switch of its own may still be a part of what the flip does.
    whole = switches.keys() == wanted.keys()
    is_default = whole and all(known.share == "default" for known in switches.values())
    return BootSwitch(" ".join(words), tuple(switches), "default" if is_default else "part")
