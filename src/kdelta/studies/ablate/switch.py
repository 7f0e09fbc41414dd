# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a unit the kernel's command line switches, measured without a build."""

from collections.abc import Sequence

from kdelta.infer.estimate import effect_between
from kdelta.kernels.kconfig import Config
from kdelta.kernels.switches import boot_switch
from kdelta.kernels.units import Unit
from kdelta.report.ablation_model import SwitchShare
from kdelta.studies.ablate.measure import Bench, Measured


async def switch_shares(
    bench: Bench, before: Measured, units: Sequence[Unit], config: Config
) -> dict[str, SwitchShare]:
    """For each unit that A can switch at boot, what A does with it switched."""
    found: dict[str, SwitchShare] = {}
    for unit in units:
        switch = boot_switch([(flip.option, flip.after) for flip in unit.options], config)
        if switch is None or before.kernel is None:
            continue
        switched = await bench.measure(f"A with {switch.words}", before.kernel, append=switch.words)
        if switched.failure:
            continue
        found[unit.name] = SwitchShare(
            words=switch.words,
            whole=switch.share == "default",
            effects={
                name: effect_between(path, switched.code[name])
                for name, path in before.code.items()
                if name in switched.code
            },
        )
    return found
