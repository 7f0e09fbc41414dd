# SPDX-License-Identifier: GPL-2.0-or-later
"""Prices of misses from timed and replayed links of programs."""

from collections.abc import Sequence

from kdelta.infer.calibration_model import Fitted, ProgramRows


def fit(rows: Sequence[ProgramRows], *, seed: int = 1) -> Fitted:
    """Fits shared prices of mechanisms, not negative, to programs with a base each."""
    raise NotImplementedError
