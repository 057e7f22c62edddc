# SPDX-License-Identifier: BSD-3-Clause
"""The project's own speed, and experiments that load a machine."""
