# SPDX-License-Identifier: GPL-2.0-or-later
"""The way into the program, which says so even where nothing of it can be imported.

A crash while Python imports ends with 1, which `git bisect run` reads as bad.
"""

import os
import sys

LAB = 3
INTERRUPTED = 130
BROKEN_GATE = 255


def main() -> None:
    """Run the program, as `kdelta` and as `python -m kdelta`. `__complete` is what shells call, see
    cli/words.py.
    """
    _use_utf8()
    if sys.argv[1:2] == ["__complete"]:
        _complete()
        return
    name = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    code = BROKEN_GATE if name == "gate" else LAB
    try:
        from kdelta.cli.main import ended  # noqa: PLC0415  (it is what may fail)
        from kdelta.cli.output import open_closed_streams  # noqa: PLC0415

        open_closed_streams()
        code = ended(sys.argv[1:])
    except KeyboardInterrupt:
        code = code if name == "gate" else INTERRUPTED
        _log("kdelta: interrupted")
    except BaseException as error:  # noqa: BLE001  (whatever it is, it must not end with 1)
        _log(f"kdelta: it cannot start: {error!r}")
        _log("hint: install kdelta and what it needs again (scripts/setup, or pip)")
    sys.exit(code)


def _use_utf8() -> None:
    """Start Python again where the locale's characters are not UTF-8: names of files and words of
    a guest's command line would be other bytes than those that were given.
    """
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _complete() -> None:
    try:
        from kdelta.cli.words import print_words  # noqa: PLC0415  (it is fast alone)

        print_words(sys.argv[2:])
    except BaseException:  # noqa: BLE001  (an error would be in the middle of a command line)
        sys.exit(0)


def _log(line: str) -> None:
    try:  # noqa: SIM105  (contextlib is one more thing to import)
        sys.stderr.write(f"{line}\n")
    except BaseException:  # noqa: BLE001  (there is no reader; the exit code says it)
        pass


if __name__ == "__main__":
    main()
