# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a unit the kernel's command line switches, measured without a build."""

from collections.abc import Sequence

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.additive import ObservedKernels, difference
from kdelta.infer.search.search_model import FlipSet
from kdelta.kernels.config.kconfig import Config
from kdelta.kernels.config.switches import boot_switch
from kdelta.kernels.config.units import Unit
from kdelta.studies.ablate.model import SwitchShare
from kdelta.studies.search.measure import Bench, MeasuredKernel


async def switch_shares(
    bench: Bench, before: MeasuredKernel, units: Sequence[Unit], config: Config
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
            effects=_effects(before, switched),
        )
    return found


def _effects(before: MeasuredKernel, switched: MeasuredKernel) -> dict[str, Estimate]:
    """What the words do, by region and in the mean, by the rules that units are judged by."""
    plain, with_words = FlipSet(), FlipSet({"switched"})
    kernels = ObservedKernels([(plain, before.outcome), (with_words, switched.outcome)])
    return kernels.with_mean(difference(with_words, plain))
