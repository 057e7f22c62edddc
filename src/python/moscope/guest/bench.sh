# SPDX-License-Identifier: BSD-3-Clause
# The fixed work of `moscope bench boot`, after the boot itself: code that computes, then system calls, processes and
# files. Lines with "bench:" are read by moscope/bench_boot.py.
echo "bench: compute begins"
dd if=/dev/zero bs=64k count=1024 2>/dev/null | md5sum
awk 'BEGIN { for (i = 0; i < 1000000; i++) s += i % 7; print s }'
echo "bench: compute ends"
dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null
i=0
while [ $i -lt 200 ]; do
    i=$((i + 1))
    cat /proc/self/stat >/dev/null
done
mkdir /tmp/bench && cd /tmp/bench
i=0
while [ $i -lt 1000 ]; do
    i=$((i + 1))
    echo $i >file$i
done
ls | wc -l
rm -r /tmp/bench
# Every core takes part once.
i=0
for core in $(seq 0 $(($(nproc) - 1))); do taskset $(printf %x $((1 << core))) true && i=$((i + 1)); done
echo "cores $i"
echo "bench: ends"
