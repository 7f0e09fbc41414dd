# SPDX-License-Identifier: GPL-2.0-or-later
"""Which commits between two of a git tree account for the difference between them."""

from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect

__all__ = ["BisectRequest", "run_bisect"]
