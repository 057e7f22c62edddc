# SPDX-License-Identifier: BSD-3-Clause
"""The callers of a core that waited, from a sample of its stack (src/attribution/stack_samples.hh)."""
