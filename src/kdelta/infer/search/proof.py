# SPDX-License-Identifier: GPL-2.0-or-later
"""A search that begins with a proof: the kernel with all candidates that were not ruled out must
have the path of the kernel with all of them.
"""

from collections.abc import Iterable, Sequence

from kdelta.infer.search.additive import ObservedKernels
from kdelta.infer.search.needs import needs_of
from kdelta.infer.search.search_model import (
    NOTHING,
    Candidate,
    FlipSet,
    Limits,
    Observation,
    Pair,
    PlannedBuild,
    Proof,
    builds_left,
)


class ProofPlan:
    """What such a search knows at one point, worked out from its observations.

    kept          what was not ruled out, and what that needs
    proof_needed  whether that is not all
    proof_held    whether it has the path of all; None if unknown
    spent         builds so far, other than the two ends
    builds        the kernels that are wanted now; empty when finished
    """

    def __init__(
        self, candidates: Sequence[Candidate], observed: Sequence[Observation], limits: Limits
    ) -> None:
        self.candidates = {one.name: one for one in candidates}
        self.observed = tuple(observed)
        self.limits = limits
        self.needs = needs_of(tuple(candidates))
        self.kernels = ObservedKernels((one.flips, one.outcome) for one in observed)
        self.everything: FlipSet = frozenset(self.candidates)
        self.kept = self.needs.closure(one.name for one in candidates if not one.pruned)
        self.proof_needed = self.kept != self.everything
        self.proof_held = self.kernels.held(self.kept, self.everything)
        self.spent = len({one.flips for one in observed if one.built} - {NOTHING, self.everything})
        self.builds: tuple[PlannedBuild, ...] = ()
        self.out_of_builds = False

    @property
    def failed_proof(self) -> tuple[Pair, ...]:
        """Return the two kernels of a proof that does not hold."""
        return ((self.kept, self.everything),) if self.proof_held is False else ()

    def plan(self, wanted: Iterable[PlannedBuild]) -> None:
        """Plan these builds, each kernel once, as far as builds are left."""
        once: dict[FlipSet, PlannedBuild] = {}
        for build in wanted:
            once.setdefault(build.flips, build)
        left = builds_left(self.limits.max_builds, self.spent)
        self.builds = tuple(once.values())[:left]
        self.out_of_builds = bool(once) and left == 0

    def proof(self, fails: str, same: str, differs: str, others: str) -> Proof:
        """Return what the proof's kernel showed, where there is one to be built.

        fails: how it failed. same, differs: what it has or lacks, with the kept candidates. others:
        what became of those that were ruled out.
        """
        if self.kept in self.kernels.failed:
            return Proof(None, f"no proof: the kernel with all that was kept{fails}")
        if self.kept not in self.kernels:
            return Proof(None, "no proof yet")
        differing, how = self.kernels.parting(self.kept, self.everything)
        if self.proof_held:
            return Proof(True, f"{same} {how}")
        text = f"ruling out was wrong: {differs} in {len(differing)} regions; the {others}"
        return Proof(False, text, differing)
