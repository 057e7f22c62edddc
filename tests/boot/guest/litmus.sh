# SPDX-License-Identifier: BSD-3-Clause
# The litmus tests of litmus.c.
/run/moscope/litmus 20
