# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the MOSBENCH paper (Boyd-Wickizer et al., OSDI 2010), made with the paper's applications that moscope has."""
