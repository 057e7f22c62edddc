# SPDX-License-Identifier: BSD-3-Clause
"""List and build workloads."""
