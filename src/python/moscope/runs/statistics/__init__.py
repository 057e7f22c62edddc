# SPDX-License-Identifier: BSD-3-Clause
"""What the windows of a point say about its figures: how large their errors are, and whether they were steady."""
