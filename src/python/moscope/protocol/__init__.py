# SPDX-License-Identifier: BSD-3-Clause
"""Random testing of a protocol."""
