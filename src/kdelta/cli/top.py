# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile --top`: functions to be looked through on a terminal."""

from kdelta.cli.output import emit
from kdelta.cli.terminal import is_interactive, opened
from kdelta.studies.profile.top import Top
from kdelta.studies.profile.top_screen import page_of, screen, table


def show_top(top: Top, title: str, functions: int) -> None:
    """Shows them until the user quits. Where there is no terminal it prints the first `functions`
    as a table. UserError for a terminal that is too small.
    """
    if not is_interactive():
        emit(table(top.functions, title, functions))
        return
    with opened() as terminal:
        while not top.state.done:
            columns, lines = terminal.size
            terminal.draw(screen(top, title, columns, lines))
            keys = terminal.keys()
            if keys is None:
                return
            for key in keys:
                top.press(key, page_of(lines))
