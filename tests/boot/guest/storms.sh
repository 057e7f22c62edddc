# SPDX-License-Identifier: BSD-3-Clause
# Mounts, renames, unlinks, opens and lseeks from all cores at once; afterwards everything unmounts.
cores=$(nproc)
mkdir -p /tmp/storm /tmp/bind
mount -t tmpfs tmpfs /tmp/storm || exit 1
echo 0123456789 >/tmp/storm/shared

walker() {
    mkdir -p /tmp/storm/$1/a/b /tmp/bind/$1
    for round in $(seq 8); do
        echo $1.$round >/tmp/storm/$1/a/b/file
        mv /tmp/storm/$1/a/b/file /tmp/storm/$1/a/moved
        [ "$(cat /tmp/storm/$1/a/moved)" = $1.$round ] || echo "lost $1.$round"
        mv /tmp/storm/$1/a /tmp/storm/$1/c && mv /tmp/storm/$1/c /tmp/storm/$1/a
        mount --bind /tmp/storm/$1 /tmp/bind/$1
        [ "$(cat /tmp/bind/$1/a/moved)" = $1.$round ] || echo "not there $1.$round"
        umount /tmp/bind/$1 || echo "busy $1.$round"
        [ ! -e /tmp/bind/$1/a ] || echo "still there $1.$round"
        # Skipping seeks: the same inode from every core.
        [ "$(dd if=/tmp/storm/shared bs=1 skip=5 count=2 2>/dev/null)" = 56 ] || echo "wrong bytes $1.$round"
        rm /tmp/storm/$1/a/moved
        [ ! -e /tmp/storm/$1/a/moved ] || echo "not gone $1.$round"
    done
}

for core in $(seq $cores); do
    walker $core &
done
wait
umount /tmp/storm && echo "unmounted"
[ ! -e /tmp/storm/shared ] && echo "empty"
dmesg | grep -E 'BUG|WARNING|Oops|stall|VFS: Busy' || echo "quiet"
echo "fix $(sed 's/.*moscope.fix=//; s/ .*//' /proc/cmdline)"
