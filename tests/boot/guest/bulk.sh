# SPDX-License-Identifier: BSD-3-Clause
# Debian's netcat moves megabytes to a host's echo service and takes them back.
#   $1 megabytes
dmesg -n 1
dd if=/dev/urandom of=/tmp/sent bs=1000000 count=$1 2>/dev/null
begin=$(cut -d ' ' -f 1 /proc/uptime)
nc.openbsd -N 10.1.1.7 7 < /tmp/sent > /tmp/back
end=$(cut -d ' ' -f 1 /proc/uptime)
cmp /tmp/sent /tmp/back && echo "same $(wc -c < /tmp/back) bytes, from $begin s to $end s"
md5sum /tmp/back
echo end
