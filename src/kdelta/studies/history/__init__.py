# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta log`: how figures moved over the kernels in the store."""

from kdelta.studies.history.request import HistoryRequest
from kdelta.studies.history.study import run_history

__all__ = ["HistoryRequest", "run_history"]
