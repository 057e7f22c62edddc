#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Shows false sharing, drawn as SVG: cores 0 and 6 store to different bytes of one cache line, in turns.
# Prints the latency of each store: the first one comes from DRAM, each later one takes the line out of the
# other chip's cache. Writes the sequence diagram false_sharing.svg into the folder given (default: here).
moscope=$(dirname "$0")/../moscope
folder=${1:-.}
mkdir -p "$folder"
"$moscope" trace 'c0 st 0x200000; c6 st 0x200008; c0 st 0x200000; c6 st 0x200008' --quiet \
    --svg "$folder/false_sharing.svg" > "$folder/false_sharing.txt" || exit
grep 'supplied by' "$folder/false_sharing.txt"
echo "drawn in $folder/false_sharing.svg, every message in $folder/false_sharing.txt"
