# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that changes name: known by their content, under any name, packed or not."""

import bz2
import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.sources.given import announce, given_at
from kdelta.spec.change import parse_change
from kdelta.spec.errors import UserError
from tests.kernels.sources.given_files import (
    COVER,
    CUT,
    FRAGMENT,
    GENERATED,
    LONG,
    MAILBOX,
    PACKERS,
    PATCH,
    PLAIN,
    PROSE,
    REPLY,
    SERIES,
    diff,
    mail,
)

NAMES = (
    *("fix.patch", "fix.diff", "0001-core-more-pages.patch", "fix", "FIX.TXT", "x.c", "README.md"),
    *("t.mbox", "t.mbx", "mail.eml", "inbox", "series.txt", "queue", "patch-6.12.117-118"),
    *(".config", "config", "config-6.1.0-13-amd64", "small.config", "x.cfg", "x.conf", "kconfig"),
    *("board_defconfig", "x.defconfig", "my-config.txt", "with blank", "ünïcode", "-dash", "#hash"),
    *("patch-6.12.117-118.xz", "fix.patch.gz", "t.mbox.gz", "config.gz", "config-6.1.xz", "x.zst"),
    *("fix.diff.bz2", "series.zst", "README.md.gz", "board_defconfig.gz", "a.b.c.xz", "no-ending"),
)
CONTENTS = {
    "patch": PLAIN,
    "mailbox": MAILBOX,
    "series": SERIES,
    "fragment": FRAGMENT,
    "base": GENERATED,
    "a text of another kind": PROSE,
    "an empty file": "",
    "binary data": "\0\1\2\0CONFIG_X=y\0",
}


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """A file with that content, packed as its name says; the patch of the series next to it."""
    content = content.encode() if isinstance(content, str) else content
    pack = PACKERS.get(Path(name).suffix)
    (folder / "member.patch").write_text(PLAIN)
    (folder / name).write_bytes(pack(content) if pack else content)
    return folder / name


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        given_at(path)
    return caught.value.message


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_what_it_holds_under_any_name(tmp_path: Path, name: str, content: str) -> None:
    path = write(tmp_path, name, CONTENTS[content])
    if content not in ("patch", "mailbox", "series", "fragment", "base"):
        assert refused(path).endswith(f"nor a config: it looks like {content}")
        return
    found = given_at(path)
    is_defconfig = "defconfig" in name
    wanted = "base" if content == "fragment" and is_defconfig else content
    assert found.kind == wanted
    assert bool(found.patches) != bool(found.text)
    if found.patches:
        (patch,) = found.patches
        assert patch.subject in ("core: more pages", "")
        assert diff().encode() in patch.content


@pytest.mark.parametrize("content", [CUT, LONG, CUT + LONG])
def test_a_fragment_of_many_options_or_with_a_head_is_one(tmp_path: Path, content: str) -> None:
    assert given_at(write(tmp_path, "x.config", content)).kind == "fragment"


def test_replies_and_cover_letters_of_a_mailbox_are_left_out_and_named(tmp_path: Path) -> None:
    found = given_at(write(tmp_path, "t.mbox", MAILBOX))
    assert found.described == (
        'a mailbox with 1 patch; left out: a mail without a patch, "[PATCH 0/1] core: a cover '
        'letter"; a reply with another diff, "Re: [PATCH 1/1] core: more pages"'
    )


def test_a_reply_without_re_is_known_by_what_it_quotes(tmp_path: Path) -> None:
    quoting = mail("core: perhaps so", f"> -\tclear_pages(2);\n\n{diff(8)}", answers=True)
    found = given_at(write(tmp_path, "t.mbox", PATCH + quoting))
    assert found.left_out == ('a reply with another diff, "core: perhaps so"',)


def test_a_later_diff_of_the_same_lines_is_left_out(tmp_path: Path) -> None:
    later = mail("[PATCH] core: still more", diff(9))
    found = given_at(write(tmp_path, "t.mbox", PATCH + later))
    assert found.left_out == ('a later diff of the same lines, "[PATCH] core: still more"',)
    assert b"clear_pages(3)" in found.patches[0].content


def test_the_only_diff_is_taken_though_it_is_in_a_reply(tmp_path: Path) -> None:
    found = given_at(write(tmp_path, "t.mbox", COVER + REPLY))
    assert b"clear_pages(7)" in found.patches[0].content
    other = REPLY.replace("Re: [PATCH 1/1]", "Re:")
    message = refused(write(tmp_path, "t.mbox", COVER + REPLY + other))
    assert "2 replies with a diff, and no other patch" in message


def test_two_versions_of_a_patch_are_refused(tmp_path: Path) -> None:
    second = PATCH.replace("[PATCH 1/1]", "[PATCH v2 1/1]").replace("(3)", "(4)")
    message = refused(write(tmp_path, "t.mbox", PATCH + second))
    assert message.endswith('has two versions of "core: more pages": v1 and v2')


def test_a_mailbox_without_a_diff_is_refused(tmp_path: Path) -> None:
    assert "none of its mails has a diff" in refused(write(tmp_path, "x.patch", COVER))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("CONFIG_A = y\n", "line 1: neither an option nor a comment: 'CONFIG_A = y'"),
        ("CONFIG_A=y\nCONFIG_B=y why\n", "line 2: neither .* 'CONFIG_B=y why'"),
        ("#CONFIG_A is not set\n", "line 1: neither .* '#CONFIG_A is not set'"),
        ("CONFIG_A is not set\nCONFIG_B\n", "line 1: neither .*; nor is 1 more line$"),
        ("<<<<<<< a\nCONFIG_A=y\n=======\n>>>>>>> b\n", "line 1: neither .* '<<<<<<< a'"),
        (f"{PROSE}CONFIG_A=y\n", "line 3: neither an option nor a comment: 'How to build"),
    ],
)
def test_options_that_kbuild_would_not_take(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        given_at(write(tmp_path, "x.config", content))


def test_a_comment_behind_an_option_is_left_out(tmp_path: Path) -> None:
    lines = (
        *("# CONFIG_A is not set # look at this again", "CONFIG_B=m\t# kept by its author (1)"),
        *('CONFIG_C="a # b" # c', 'CONFIG_D="\\" # d"', "CONFIG_E=0x1f #"),
    )
    found = given_at(write(tmp_path, "x.config", "\n".join(lines)))
    wanted = {"A": "n", "B": "m", "C": '"a # b"', "D": '"\\" # d"', "E": "0x1f"}
    assert parse_config(found.text) == {f"CONFIG_{name}": wanted[name] for name in wanted}


@pytest.mark.parametrize(
    "head",
    [
        "#\n# Automatically generated file; DO NOT EDIT.\n# coreboot configuration\n#\n",
        "#\n# Automatically generated make config: don't edit\n# Busybox version: 1.37.0\n# Mon\n",
        "# Automatically generated file; DO NOT EDIT.\n# U-Boot 2026.04 Configuration\n",
        "# Automatically generated file; DO NOT EDIT.\n# OpenWrt Configuration\n",
    ],
)
def test_the_config_of_another_program_is_refused(tmp_path: Path, head: str) -> None:
    path = write(tmp_path, "x_defconfig", f"{head}CONFIG_A=y\n")
    assert "x_defconfig is the config of another program: its head says '" in refused(path)
    with pytest.raises(UserError, match="is the config of another program"):
        announce([parse_change(f"+base:{path}")], print)


@pytest.mark.parametrize(
    "head",
    [
        "# Automatically generated file; DO NOT EDIT.\n# Linux/arm64 6.12.1 Kernel Configuration\n",
        "# Automatically generated make config: don't edit\n# Linux kernel version: 2.6.32\n",
        "# Automatically generated by a script; DO NOT EDIT.\n# Kernel: linux-next\n",
        "# Automatically generated file; DO NOT EDIT.\n# CONFIG_VERSION is not set\n",
        "# Automatically generated file; DO NOT EDIT.\n# options for debugging\n",
    ],
)
def test_other_heads_are_those_of_kernels(tmp_path: Path, head: str) -> None:
    assert given_at(write(tmp_path, "x", f"{head}CONFIG_A=y\n")).kind == "fragment"


@pytest.mark.parametrize(
    "option", ["CONFIG_A=y\n", "| build +CONFIG_A=y | refused |\n", "Set CONFIG_A=m, say.\n"]
)
def test_text_about_options_is_no_config(tmp_path: Path, option: str) -> None:
    text = f"{PROSE}A line.\n\n{option}\nAnother one.\nThe third.\n"
    path = write(tmp_path, "cases.md", text)
    assert refused(path).endswith("it looks like a text of another kind")
    with pytest.raises(UserError, match="is no config: it looks like a text of another kind"):
        announce([parse_change(f"+base:{path}")], print)
    assert "neither an option" in refused(write(tmp_path, "x.config", text + 2 * option))


def _tar(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("fix.patch")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _zip(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("fix.patch", content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_tar(PLAIN.encode()), r"an archive of files \(tar\)"),
        (_zip(PLAIN.encode()), "a zip archive"),
        (gzip.compress(bz2.compress(PLAIN.encode())), "a file packed twice"),
        (b"<!DOCTYPE html><html>--- a</html>\n", r"a web page \(HTML\)"),
        (b"*** a/kernel/core.c\n--- b/kernel/core.c\n***************\n", "a context diff"),
        (b"9c9\n< int a;\n---\n> int b;\n", "a diff without context"),
        (b"Hi,\n> --- a/x.c\n> +++ b/x.c\n", "a text with a diff that is quoted or indented"),
        (b"\x7fELF\2\1\1", r"a program or an object \(ELF\)"),
        (PLAIN.encode("utf-16-le"), "binary data"),
        (b"console=ttyS0\nhugepages=16\nnosmt\n", r'boot parameters, .* written \+cmdline:"'),
        (b"quiet words alone\n", "a text of another kind"),
    ],
)
def test_what_cannot_be_used_is_refused_as_what_it_looks_like(
    tmp_path: Path, content: bytes, message: str
) -> None:
    for name in ("x", "x.gz"):
        with pytest.raises(UserError, match=f"it looks like {message}"):
            given_at(write(tmp_path, name, content))


def test_line_ends_and_encodings_of_other_systems(tmp_path: Path) -> None:
    wanted = given_at(write(tmp_path, "a.patch", PLAIN)).patches[0].content
    crlf = PLAIN.replace("\n", "\r\n")
    for content in (crlf.encode(), b"\xef\xbb\xbf" + PLAIN.encode(), crlf.encode("utf-16")):
        path = write(tmp_path, "a.patch", content)
        assert given_at(path).patches[0].content == wanted
        (tmp_path / "a.patch").unlink()
    fragment = given_at(write(tmp_path, "a", FRAGMENT.replace("\n", "\r\n").encode("utf-16")))
    assert fragment.text == FRAGMENT


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    assert "(it is a link to gone)" in refused(tmp_path / "link")
    assert "no file but a pipe or a device" in refused(tmp_path / "pipe")
    assert "no file but a pipe or a device" in refused(Path("/dev/zero"))
    assert "loop" in refused(tmp_path / "loop")
    assert "a folder with neither a series file nor patches" in refused(tmp_path / "folder")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(PLAIN.encode())[:-9])
    assert "cannot be unpacked" in refused(tmp_path / "cut.gz")
    assert "cannot be read: File name too long" in refused(tmp_path / ("n" * 300))


def test_a_file_that_unpacks_to_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdelta.kernels.sources.content.GIVEN_FILE_BYTES", 1 << 20)
    path = write(tmp_path, "bomb.gz", bytes(2 << 20))
    assert refused(path).endswith("is too large: more than 1 MiB")


def test_a_text_that_is_too_long_for_a_config(tmp_path: Path) -> None:
    path = write(tmp_path, "x.config", b"CONFIG_A=y\n" * 800_000)
    assert refused(path).endswith("it looks like a text of another kind, of more than 8 MiB")
    with pytest.raises(UserError, match=r"is no config: .* of more than 8 MiB"):
        announce([parse_change(f"+base:{path}")], print)


def test_a_folder_of_patches_is_a_series_and_its_mailboxes_are_read(tmp_path: Path) -> None:
    write(tmp_path, "b.patch.gz", MAILBOX)
    (tmp_path / "series").write_text("b.patch.gz\n")
    found = given_at(tmp_path)
    assert [patch.name for patch in found.patches] == ["b.patch.gz"]
    assert found.left_out[1].startswith("of b.patch.gz a reply with another diff")
    (tmp_path / "series").write_text("b.patch.gz\nx.config\n")
    write(tmp_path, "x.config", FRAGMENT)
    assert "x.config holds no patch" in refused(tmp_path)


def test_what_files_were_taken_for_is_reported_once(tmp_path: Path) -> None:
    names = {"p": PLAIN, "m.mbox.gz": PATCH, "f": FRAGMENT, "c.xz": GENERATED}
    words = [f"+{write(tmp_path, name, content)}" for name, content in names.items()]
    base = f"+base:{tmp_path}/f"
    over = "a config fragment with 2 options, over the base; if it is a whole config: +base:"
    said: list[str] = []
    for _ in range(2):
        announce([parse_change(word) for word in (*words, "+CONFIG_A=y")], said.append)
    announce([parse_change(base)], said.append)
    assert said == [
        f"{words[0]}: a patch",
        f"{words[1]}: a patch",
        f"{words[2]}: {over}{tmp_path}/f",
        f"{words[3]}: a whole config with 1102 options",
        f"{words[2]} stands before the base {words[3]}, and is applied over it",
        f"{base}: a whole config with 2 options",
    ]


def test_a_base_that_is_no_config_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "x.config", PLAIN)
    with pytest.raises(UserError, match=r"is no config: it looks like a patch") as caught:
        announce([parse_change(f"+base:{path}")], print)
    assert caught.value.hint == f"for a patch write +{path}"


def test_what_stands_before_a_base_is_applied_over_it_and_that_is_reported(tmp_path: Path) -> None:
    words = [
        f"+base:{write(tmp_path, 'one', FRAGMENT)}",
        f"+{write(tmp_path, 'over.config', FRAGMENT)}",
        "+CONFIG_A=y",
        f"+base:{write(tmp_path, 'two', FRAGMENT)}",
        f"+{write(tmp_path, 'later.config', FRAGMENT)}",
    ]
    said: list[str] = []
    announce([parse_change(word) for word in words], said.append)
    assert said[-3:] == [
        f"{words[0]} does not count: the base is {words[3]}, which comes later",
        f"{words[1]} stands before the base {words[3]}, and is applied over it",
        f"+CONFIG_A=y stands before the base {words[3]}, and is applied over it",
    ]
    assert len(said) == 7
