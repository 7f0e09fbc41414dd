# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing`: what entering the kernel and returning costs."""
