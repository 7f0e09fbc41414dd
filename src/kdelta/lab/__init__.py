# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs kernels: requests, kernels, guests, runs and their place in reports."""
