# SPDX-License-Identifier: BSD-3-Clause
"""List, print, test and build coherence protocols."""
