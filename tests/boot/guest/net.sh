# SPDX-License-Identifier: BSD-3-Clause
# The network card: one queue per core, ping, and bytes through the hosts' echo service and back.
echo "queues $(ls /sys/class/net/eth0/queues | tr '\n' ' ')"
ping -c 2 -i 0.01 10.1.1.1 | grep received
dd if=/dev/urandom of=/tmp/sent bs=1000 count=${1:-100} 2>/dev/null
nc 10.1.1.7 7 < /tmp/sent > /tmp/back
cmp /tmp/sent /tmp/back && echo "echoed $(wc -c < /tmp/back)"
echo end
