# SPDX-License-Identifier: BSD-3-Clause
# What the kernel itself says of its symbols, modules and slab caches, beside a program that tells of its memory.
mkdir -p /dev/shm/spool/deep
echo hello >/dev/shm/spool/deep/mail
awk 'NR % 300 == 7 {print "symbol", $1, $2, $3, $4}' /proc/kallsyms
grep -E " (init_task|jiffies|tasklist_lock|dentry_hashtable|schedule|__x64_sys_openat|vm_committed_as)$" /proc/kallsyms | sed 's/^/symbol /'
awk 'NR > 2 {print "slab", $1, $4}' /proc/slabinfo
/run/moscope/names /dev/shm/spool/deep/mail &
sleep 0.2
echo "names: look"
sleep 1000
