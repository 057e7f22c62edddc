# SPDX-License-Identifier: BSD-3-Clause
# Work whose answers are known: digests, sorting, arithmetic, processes, pipes, files. tests/boot/table.py has the answers.
set -e
mkdir -p /tmp/work && cd /tmp/work
seq 1 20000 >numbers
echo "md5 $(md5sum <numbers | cut -c 1-32)"
echo "sha $(sha256sum <numbers | cut -c 1-64)"
echo "sum $(awk '{ s += $1 } END { printf "%d", s }' numbers)"
echo "thirds $(awk 'BEGIN { for (i = 1; i <= 2000; i++) s += 1 / (3 * i); printf "%.12f", s }')"
gzip -9 <numbers >numbers.gz && gunzip <numbers.gz | cmp - numbers && echo "gzip right"
sort -rn numbers | head -n 3 | tr '\n' ' ' && echo
tar -c numbers | tar -t
i=0; while [ $i -lt 100 ]; do i=$((i + $(echo 1))); done; echo "processes $i"
echo "end"
