# SPDX-License-Identifier: BSD-3-Clause
# Connections over a bad link to a server of this guest, whose sockets and memory are counted before and after.
#   $1 connections, $2 at a time, $3 bytes of an answer
dmesg -n 1
left() { # when the last connections have had the time for their end
    sleep ${1:-0}
    echo "sockets $(sed -n 's/^TCP: inuse \([0-9]*\) orphan \([0-9]*\) .*/inuse \1 orphan \2/p' /proc/net/sockstat)"
    echo "memory $(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
}
/run/moscope/server 80 500 100 $3 > /dev/null # what the first connections allocate stays
left 70
/run/moscope/server 80 $1 $2 $3
left 70
echo end
