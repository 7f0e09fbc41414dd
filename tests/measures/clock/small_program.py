# SPDX-License-Identifier: GPL-2.0-or-later
"""A program of some functions, as small as one that can be timed may be."""

from kdelta.measures.clock.bundle import WARM_ROUNDS, ProgramSource

PASSES = 4
FUNCTIONS = tuple(f"f{number}" for number in range(12))

_FUNCTION = "__attribute__((noinline)) unsigned int {}(unsigned int a) {{ return a * {}u + {}u; }}"
TEXT = "\n".join(
    [
        '#include "start.h"',
        '#include "timing.h"',
        "unsigned int result;",
        *(_FUNCTION.format(name, 2 * at + 3, at) for at, name in enumerate(FUNCTIONS)),
        "static void pass(unsigned int k)",
        "{",
        "    for (unsigned int i = 0; i < 100; i++) {",
        *(f"        result = {name}(result + k);" for name in FUNCTIONS),
        "    }",
        "}",
        "int main(int argc, char **argv)",
        "{",
        f"    return timing_main_once(argc, argv, {PASSES}, {WARM_ROUNDS}, pass);",
        "}",
    ]
)


def small(relinks: int = 2) -> ProgramSource:
    """The program."""
    return ProgramSource(
        name="small-one", code="small", arguments=("one",), c_source=TEXT, relinks=relinks
    )
