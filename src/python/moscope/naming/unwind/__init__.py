# SPDX-License-Identifier: BSD-3-Clause
"""The callers of code in which a core waited, from a sample of the core's stack (src/attribution/stack_samples.hh)."""
