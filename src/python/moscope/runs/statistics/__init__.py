# SPDX-License-Identifier: BSD-3-Clause
"""What the windows of a point say about its figures: the size of their errors, and whether they were steady."""
