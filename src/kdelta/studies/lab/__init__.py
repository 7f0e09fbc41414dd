# SPDX-License-Identifier: GPL-2.0-or-later
"""What every study needs: requests, kernels, guests, runs and their place in reports."""
