# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of the options that differ between two configs account for the difference between them."""

from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.study import run_ablate

__all__ = ["AblateRequest", "run_ablate"]
