# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta shell` at a terminal that the test makes, and with standard input that is none."""

import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from kdelta.cli.shell import Keys, _is_terminal
from kdelta.guests import shell as guest_shell
from kdelta.guests.job import JobFile
from kdelta.host.command import quiet
from kdelta.machines.terminal import BEGIN, END, Window, _Line
from kdelta.spec.errors import LabError, UserError
from tests.cli.studies import Captured, kdelta
from tests.machines.bench import OLD, kernel

KDELTA = (sys.executable, "-m", "kdelta")
LIMIT_SECONDS = 120.0
ROWS, COLUMNS = 31, 99
CTRL_A, CTRL_C = b"\x01", b"\x03"


class Typist:
    """A `kdelta shell` at a terminal of the test's own."""

    def __init__(self, *words: str) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.theirs = theirs
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [*KDELTA, "shell", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TERM": "vt100"},
            start_new_session=True,
        )
        self.seen = b""

    def type(self, keys: bytes) -> None:
        self.seen = b""
        os.write(self.ours, keys)

    def wait_for(self, text: bytes) -> None:
        until = time.monotonic() + LIMIT_SECONDS
        while text not in self.seen:
            assert time.monotonic() < until, self.seen
            if select.select([self.ours], [], [], 1)[0]:
                self.seen += os.read(self.ours, 4096)
            elif self.process.poll() is not None:
                pytest.fail(f"ended with {self.process.returncode}: {self.seen!r}")

    def wait_until_it_begins(self) -> None:
        until = time.monotonic() + LIMIT_SECONDS
        while termios.tcgetattr(self.theirs) == self.before:
            assert self.process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)

    def end(self) -> int:
        """The exit code, of one that left the terminal as it was, and no guest."""
        code = self.process.wait(LIMIT_SECONDS)
        assert termios.tcgetattr(self.theirs) == self.before
        return code

    @property
    def guests(self) -> list[str]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return path.read_text().split()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def typist(request: pytest.FixtureRequest) -> Iterator[Typist]:
    found = Typist(*request.param)
    yield found
    found.close()


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("typist", [(OLD,)], indirect=True, ids=["shell"])
def test_what_is_typed_reaches_a_shell_and_its_exit_code_comes_back(typist: Typist) -> None:
    prompt = f"{kernel(OLD).release} # ".encode()
    typist.wait_for(prompt)
    typist.type(b"uname -r\r")
    typist.wait_for(f"{kernel(OLD).release}\r\n".encode())
    typist.type(b"stty size; echo $TERM\r")
    typist.wait_for(f"{ROWS} {COLUMNS}\r\nvt100\r\n".encode())
    typist.type(b"echo started; sleep 1000; echo after\r")
    typist.wait_for(b"started\r\n")
    typist.type(CTRL_C)
    typist.wait_for(prompt)
    assert b"after" not in typist.seen
    typist.type(b"exit 3\r")
    assert typist.end() == 3


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("typist", [(OLD, "--", "cat")], indirect=True, ids=["cat"])
@pytest.mark.parametrize("how", ["Ctrl-A x", "SIGTERM"])
def test_a_user_who_leaves_gets_the_terminal_back_and_no_guest_stays(
    typist: Typist, how: str
) -> None:
    typist.wait_until_it_begins()
    typist.type(b"one\r")
    typist.wait_for(b"one\r\none\r\n")
    guests = typist.guests
    assert guests
    if how == "Ctrl-A x":
        typist.type(CTRL_A + b"x")
        assert typist.end() == 130
    else:
        number = signal.Signals[how]
        typist.process.send_signal(number)
        assert typist.end() == 128 + number
    assert not any(Path("/proc", pid).exists() for pid in guests)


@pytest.mark.guest
@pytest.mark.slow
def test_standard_input_that_is_no_terminal_is_the_shells(tmp_path: Path) -> None:
    carried = tmp_path / "carried"
    carried.write_bytes(b"a\tb\n")
    done = subprocess.run(
        [*KDELTA, "shell", OLD, "--file", f"{carried}:/tmp/it"],
        input=b"cat /tmp/it; printf '\\n\\001'; tty 2>&1 || kill -9 $$",
        capture_output=True,
        check=False,
    )
    assert done.stdout.startswith(b"a\tb\n\n\x01")
    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.guest
@pytest.mark.slow
def test_a_kernel_without_a_serial_line_is_reported() -> None:
    words = (OLD, "+cmdline:8250.nr_uarts=0", "--", "true")
    done = subprocess.run(
        [*KDELTA, "shell", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 255
    assert "kdelta: cannot open a shell in deb:linux-image" in done.stderr
    assert "cannot open /dev/ttyS0: No such file" in done.stderr
    assert "hint: kdelta run deb:" in done.stderr


def test_window_shows_what_is_between_begin_and_end_however_it_is_cut() -> None:
    printed = b"boot\r\n" + BEGIN + b"a\033]kb\033[1mc\033" + END + b"kdelta: exit 0\r\n"
    for size in (1, 2, 3, 7, len(printed)):
        window = Window()
        pieces = [printed[at : at + size] for at in range(0, len(printed), size)]
        assert b"".join(map(window.shown, pieces)) == b"a\033]kb\033[1mc\033"
        assert window.begun
        assert window.ended


def test_a_line_that_breaks_off_ends_what_is_read() -> None:
    """As when QEMU ends before it has read all that was typed."""

    class Broken:
        def __init__(self) -> None:
            self.pieces = [BEGIN + b"shown", b""]

        async def read(self, _: int) -> bytes:
            piece = self.pieces.pop(0)
            if piece:
                return piece
            raise ConnectionResetError

    class Shown:
        text = b""

        def begin(self, _: object) -> None:
            pass

        def show(self, printed: bytes) -> None:
            self.text += printed

    screen = Shown()
    line = _Line(cast(Any, Broken()), cast(Any, None), screen)
    asyncio.run(line.read())
    assert screen.text == b"shown"


def test_window_does_not_keep_what_is_no_end() -> None:
    window = Window()
    assert window.shown(BEGIN + b"ab\033") == b"ab"
    assert window.shown(b"[0m") == b"\033[0m"


@pytest.mark.parametrize(
    ("typed", "sent", "leaves"),
    [
        (b"ls\r", b"ls\r", False),
        (b"a\x01xb", b"a", True),
        (b"\x01a\x01\x01\x01bc", b"\x01\x01\x01bc", False),
    ],
)
def test_ctrl_a_is_kdeltas_own_key(typed: bytes, sent: bytes, leaves: bool) -> None:
    assert Keys().typed(typed) == (sent, leaves)
    keys, found, ended = Keys(), b"", False
    for at in range(len(typed)):
        more, ended = keys.typed(typed[at : at + 1])
        found += more
        if ended:
            break
    assert (found, ended) == (sent, leaves)


def test_a_shell_of_this_host_comes_with_what_it_loads_and_tools() -> None:
    found = guest_shell.carried_shell([], "x86_64", quiet)
    places = {file.guest for file in found.files}
    assert found.argv[0] in places
    assert any(place.endswith("/ls") for place in places)
    assert any("ld-linux" in place for place in places)


def test_a_shell_that_the_user_brings_is_taken() -> None:
    own = JobFile(Path("/bin/true"), "/bin/sh", 0o755)
    found = guest_shell.carried_shell([own], "x86_64", quiet)
    assert found.argv == ("/bin/sh",)
    assert own in found.files


def test_without_a_shell_for_the_architecture_the_user_is_asked_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(*_: object) -> None:
        raise LabError("there is no package busybox-static for riscv64")

    monkeypatch.setattr(guest_shell, "userland", none)
    with pytest.raises(UserError, match=r"of riscv64 .* no package busybox-static") as raised:
        guest_shell.carried_shell([], "riscv64", quiet)
    assert "--file BUSYBOX:/bin/sh" in raised.value.hint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("shell deb:aa deb:bb", "2 kernels, not one"),
        ("shell deb:aa -- no-such-program", "no program no-such-program"),
        ("shell deb:aa --file ./no-such-file", "no such file: ./no-such-file"),
        ("shell deb:aa -- deb:bb", "cannot run deb:bb: it is a kernel spec"),
        ("shell image:/no/vmlinuz", "/no/vmlinuz cannot be read"),
    ],
)
def test_slips_are_named_before_a_kernel_is_fetched(
    words: str, said: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdelta.lab.lab.Lab.kernel", lambda *_: pytest.fail("fetched"))
    assert kdelta(*words.split()) == 255
    shown = capsys.readouterr().err
    assert said in shown
    assert "hint: " in shown or "try: " in shown


def test_streams_that_are_closed_are_no_terminals() -> None:
    assert not _is_terminal(None)
