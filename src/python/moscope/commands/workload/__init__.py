# SPDX-License-Identifier: BSD-3-Clause
"""What `run` can measure."""
