# SPDX-License-Identifier: BSD-3-Clause
"""The project's own speed, measured; one module per benchmark."""
