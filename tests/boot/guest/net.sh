# SPDX-License-Identifier: BSD-3-Clause
# The network card: one queue per core, ping, and bytes through the hosts' echo service and back; with the packages ethtool
# and iperf also what these say of it.
dmesg -n 1 # no message of the kernel in the middle of a line
echo "queues $(ls /sys/class/net/eth0/queues | tr '\n' ' ')"
ping -c 2 -i 0.01 10.1.1.1 | grep received
dd if=/dev/urandom of=/tmp/sent bs=1000 count=${1:-100} 2>/dev/null
nc 10.1.1.7 7 < /tmp/sent > /tmp/back
cmp /tmp/sent /tmp/back && echo "echoed $(wc -c < /tmp/back)"
if command -v ethtool > /dev/null; then
    for core in $(seq 0 $(($(nproc) - 1))); do
        taskset -c $core iperf -c 10.1.1.1 -p 9 -n 256K -f m
    done
    grep 'virtio1-output' /proc/interrupts
    for what in "" -l -x -S; do
        ethtool $what eth0
    done
    ethtool -L eth0 combined 1 && ethtool -l eth0 && ping -c 1 10.1.1.1 | grep received
fi
echo end
