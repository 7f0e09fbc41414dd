# SPDX-License-Identifier: GPL-2.0-or-later
"""From a workload to the initramfs and the job that a guest gets."""
