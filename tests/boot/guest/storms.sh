# SPDX-License-Identifier: BSD-3-Clause
# Mounts, renames, unlinks, opens, lseeks, mappings, connections and datagrams from all cores at once; afterwards everything unmounts.
cores=$(nproc)
faults=/run/storm-faults
mkdir -p /tmp/storm /tmp/bind
mount -t tmpfs tmpfs /tmp/storm || exit 1
echo 0123456789 >/tmp/storm/shared

fault() {
    echo "$*"
    echo "$*" >>$faults
}

walker() {
    mkdir -p /tmp/storm/$1/a/b /tmp/bind/$1
    for round in $(seq 8); do
        echo $1.$round >/tmp/storm/$1/a/b/file
        mv /tmp/storm/$1/a/b/file /tmp/storm/$1/a/moved
        [ "$(cat /tmp/storm/$1/a/moved)" = $1.$round ] || fault "lost $1.$round"
        mv /tmp/storm/$1/a /tmp/storm/$1/c && mv /tmp/storm/$1/c /tmp/storm/$1/a
        mount --bind /tmp/storm/$1 /tmp/bind/$1
        [ "$(cat /tmp/bind/$1/a/moved)" = $1.$round ] || fault "not there $1.$round"
        umount /tmp/bind/$1 || fault "busy $1.$round"
        [ ! -e /tmp/bind/$1/a ] || fault "still there $1.$round"
        # Skipping seeks: the same inode from every core.
        [ "$(dd if=/tmp/storm/shared bs=1 skip=5 count=2 2>/dev/null)" = 56 ] || fault "wrong bytes $1.$round"
        rm /tmp/storm/$1/a/moved
        [ ! -e /tmp/storm/$1/a/moved ] || fault "not gone $1.$round"
    done
}

# All cores walk the same directories, and one of them renames, unlinks and unmounts these meanwhile.
crowd() {
    for round in $(seq 40); do
        read -r got 2>/dev/null </tmp/storm/crowd/d/e/file && [ "$got" != right ] && fault "not right but '$got' $1.$round"
        read -r got 2>/dev/null </tmp/storm/crowd/mount/d/file && [ "$got" != mounted ] && fault "not mounted but '$got' $1.$round"
    done
}

disturber() {
    for round in $(seq 6); do
        mkdir -p /tmp/storm/crowd/d/e
        echo right >/tmp/storm/crowd/d/e/new
        mv /tmp/storm/crowd/d/e/new /tmp/storm/crowd/d/e/file
        mount -t tmpfs tmpfs /tmp/storm/crowd/mount
        mkdir /tmp/storm/crowd/mount/d
        echo mounted >/tmp/storm/crowd/mount/new
        mv /tmp/storm/crowd/mount/new /tmp/storm/crowd/mount/d/file
        mv /tmp/storm/crowd/d/e /tmp/storm/crowd/d/away
        mv /tmp/storm/crowd/d/away /tmp/storm/crowd/d/e
        # A file that a core has open keeps the mount busy, for a moment.
        tries=0
        until umount /tmp/storm/crowd/mount 2>/dev/null; do
            tries=$((tries + 1))
            [ $tries -lt 500 ] || { fault "busy for ever $round"; break; }
        done
        rm /tmp/storm/crowd/d/e/file
        # Names that nobody uses any more are freed, and the next unmount comes by where cores had references of them to spare.
        echo 2 >/proc/sys/vm/drop_caches
        mv /tmp/storm/crowd/d /tmp/storm/crowd/gone
        rmdir /tmp/storm/crowd/gone/e /tmp/storm/crowd/gone || fault "not empty $round"
    done
}

for core in $(seq $cores); do
    walker $core &
done
wait
mkdir -p /tmp/storm/crowd/mount
for core in $(seq 2 $cores); do
    crowd $core &
done
disturber
wait
if [ -x /run/moscope/maps ]; then
    /run/moscope/maps || fault "maps"
fi
if [ -x /run/moscope/threads ]; then
    /run/moscope/threads || fault "threads"
fi
# Twice as many processes as cores at one inode: some of them sleep for its mutex.
if [ -x /run/moscope/vfsfix ]; then
    /run/moscope/vfsfix seek --directory /tmp/storm/seek --cores $((2 * cores)) --operations 20000 || fault "seeks"
fi
# Connections and datagrams that all cores send themselves.
if [ -x /run/moscope/netfix ]; then
    ifconfig lo up
    for what in accept route memory inode; do
        /run/moscope/netfix $what --cores $cores --operations 2000 || fault "netfix $what"
    done
fi
if [ -x /run/moscope/ports ]; then
    /run/moscope/ports || fault "ports"
fi
umount /tmp/storm && echo "unmounted"
[ ! -e /tmp/storm/shared ] && echo "empty"
[ ! -s $faults ] && echo "nothing lost"
[ ! -e /proc/lockdep_stats ] || grep debug_locks: /proc/lockdep_stats
dmesg | grep -E 'BUG|WARNING|Oops|KASAN:|INFO:|stall|VFS: Busy|lock debugging' || echo "quiet"
echo "fix $(sed 's/.*moscope.fix=//; s/ .*//' /proc/cmdline)"
