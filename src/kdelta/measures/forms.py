# SPDX-License-Identifier: GPL-2.0-or-later
"""How documents show what each measure found: that of any, or its own."""

from kdelta.measures.cycles.parts import CycleForm
from kdelta.report.effects import EffectsView
from kdelta.report.measured import MODEL_CYCLES

_OWN: dict[str, EffectsView] = {MODEL_CYCLES: CycleForm()}
_ANY = EffectsView()


def form_of(measure: str) -> EffectsView:
    """Return how what a measure of that name found is shown."""
    return _OWN.get(measure, _ANY)
