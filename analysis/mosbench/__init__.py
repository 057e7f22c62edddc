# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the MOSBENCH paper from the folder of `moscope mosbench`, beside the paper's results."""
