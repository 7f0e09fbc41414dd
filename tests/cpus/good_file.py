# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU file without a mistake."""

GOOD = """
name = "mine"
title = "a core of my own"
arch = "x86_64"
frontend = "coupled"
frontend_source = "man section 1"

[sources]
man = "Somebody, Manual, document 12"

[l1i]
bytes = 32768
sets = 64
ways = 8
line_bytes = 64
source = "man section 2"

[l1d]
bytes = 49152
sets = 64
ways = 12
line_bytes = 64
source = "man"

[l2]
bytes = 1310720
sets = 1024
ways = 20
line_bytes = 64
shared = true
source = "man section 3"

[itlb]
entries = 48
sets = 1
ways = 48
page_bytes = 2097152
source = "man section 4"

[btb]
entries = 512
sets = 256
ways = 2
source = "man section 5"

[base]
cycles_per_insn = 0.5
source = "assumed: two a cycle"

[strings]
bytes_per_cycle = [8, 32]
source = "measured: with a loop"

[misses.l1i]
cycles = [10, 14]
calibrated = true
source = "man section 6"

[misses.itlb]
cycles = [0, 7]
calibrated = false
source = "assumed: as others"

[misses.btb]
cycles = [3, 8]
calibrated = true
source = "man section 7"

[misses.l2]
cycles = [0, 70]
calibrated = true
source = "man section 8"

[[special]]
kinds = ["syscall", "sysret"]
cycles = [20, 80]
source = "assumed: as others"

[qemu]
cpu = "qemu64,+erms"
append = "nopti"
reason = "why not"

[[path]]
name = "strings by the byte"
source = "man section 9"
otherwise = "by the word"
flags = ["erms"]
functions = ["memcpy*"]
strings = true
"""
