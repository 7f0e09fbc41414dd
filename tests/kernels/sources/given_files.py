# SPDX-License-Identifier: GPL-2.0-or-later
"""Contents of files as people have them: patches, mailboxes, series and configs, for the fake tree;
and how they are packed.
"""

import bz2
import gzip
import lzma
import subprocess
from collections.abc import Callable

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: (
        subprocess.run(["zstd", "-qc"], input=content, capture_output=True, check=True).stdout
    ),
}


def diff(count: int = 3) -> str:
    """A diff of the fake tree, by which it clears so many pages."""
    return f"""\
--- a/kernel/core.c
+++ b/kernel/core.c
@@ -9,5 +9,5 @@
 {{
 \tlock(&held);
 \tlist_add(&head, &first);
-\tclear_pages(2);
+\tclear_pages({count});
 }}
"""


def mail(subject: str, body: str, *, answers: bool = False) -> str:
    """A mail of a mailbox, as archives of mailing lists have it."""
    reply = "In-Reply-To: <0@example.org>\n" if answers else ""
    return (
        "From mboxrd@z Thu Jan  1 00:00:00 1970\n"
        "From: =?UTF-8?q?Zo=C3=AB?= <someone@example.org>\n"
        f"Subject: {subject}\nDate: Mon, 2 Nov 2026 10:00:00 +0100\n"
        f"Message-ID: <{len(body)}@example.org>\n{reply}MIME-Version: 1.0\n"
        f"Content-Type: text/plain; charset=UTF-8\n\n{body}\n"
    )


COVER = mail("[PATCH 0/1] core: a cover letter", "No diff.\n\n kernel/core.c | 2 +-\n")
PATCH = mail(
    "[PATCH 1/1] core: more pages", f"For a proof.\n---\n{diff()}-- \n2.39.5\n", answers=True
)
REPLY = mail(
    "Re: [PATCH 1/1] core: more pages",
    f"Someone wrote:\n> -\tclear_pages(2);\n\nRather this:\n\n{diff(7)}",
    answers=True,
)

PLAIN = f"core: more pages\n\nFor a proof.\n\n{diff()}"
MAILBOX = COVER + PATCH + REPLY
SERIES = "# a queue\nmember.patch -p1\n"
FRAGMENT = "# a fragment\nCONFIG_ZERO_PAGES=y\n# CONFIG_SLOW is not set\n"
HEAD = "# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.12.99 Kernel Configuration\n"
CUT = f"{HEAD}CONFIG_ZERO_PAGES=y\n"
"""A fragment that kept the head of the config that it was cut from."""
LONG = "".join(f"CONFIG_LONG_{number}=y\n" for number in range(160))
"""A fragment of many options."""
GENERATED = (
    f'{HEAD}CONFIG_CC_VERSION_TEXT="gcc (Debian 12.2.0-14) 12.2.0"\nCONFIG_CC_IS_GCC=y\n'
    + "".join(f"# CONFIG_OPTION_{number} is not set\n" for number in range(1100))
)
PROSE = "# Read me\n\nHow to build: set CONFIG_X, apply a patch.\n\n--- not a diff\n"
