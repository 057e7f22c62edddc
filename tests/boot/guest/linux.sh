# SPDX-License-Identifier: BSD-3-Clause
# What Linux found on the machine, in sections that tests/boot/findings.py reads.
section() { echo "== $1"; }
cpu=/sys/devices/system/cpu
node=/sys/devices/system/node
section nproc; nproc
section nodes; cat $node/online
section distances; cat $node/node*/distance
section memory; grep -h MemTotal $node/node*/meminfo
section cores; grep -H . $node/node*/cpulist
fields='processor|cpu family|model|model name|stepping|vendor_id|cache size|cpu MHz|apicid|core id|physical id|flags'
section cpuinfo; grep -E "^($fields)[[:space:]]" /proc/cpuinfo
cache=$cpu/cpu0/cache
section caches; grep -H . $cache/index*/level $cache/index*/type $cache/index*/size \
    $cache/index*/ways_of_associativity $cpu/cpu*/cache/index*/shared_cpu_list
# The refined clock takes over a second after the boot.
sleep 2
section clock; cat /sys/devices/system/clocksource/clocksource0/current_clocksource
section interrupts; grep -E '^ *(LOC|RES|CAL|ERR|MIS|NMI):' /proc/interrupts
section devices; lsmod | cut -d ' ' -f 1
section kernel; uname -r; cat /proc/cmdline
section memory-pattern
dd if=/dev/zero bs=1M count=8 2>/dev/null | md5sum
section end
