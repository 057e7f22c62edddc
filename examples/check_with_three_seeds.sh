#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks a protocol with random accesses under three seeds (default: MSI, 20000 accesses each).
# Prints, for each seed, how many of the declared transitions were reached, and those that were not.
# Usage: check_with_three_seeds.sh [PROTOCOL [ACCESSES]]
moscope=$(dirname "$0")/../moscope
for seed in 1 2 3; do
    echo "seed $seed"
    "$moscope" protocol check "${1:-MSI}" --ops "${2:-20000}" --seed "$seed" --quiet || exit
done
