#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# The guest's first process: mounts what programs expect, loads modules for the virtio devices that are there, puts
# a root image on the disk under a writable layer, then runs the script (or gives a shell) and powers off.
# What it prints with "moscope:" in front is read by the simulator's front end.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=linux LANG=C
export HOME=/ PS1="moscope# "

/bin/busybox mkdir -p /proc /sys /dev /run /tmp /disk
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
ln -sf /proc/self/fd /dev/fd
exec </dev/console >/dev/console 2>&1
hostname moscope
ip link set lo up 2>/dev/null

# load NAME...: each module with all that it needs; what is built in has no order file.
load() {
    for wanted in "$@"; do
        [ -f "/lib/modules/order/$wanted" ] || continue
        while read -r module; do
            [ -d "/sys/module/$module" ] || insmod "/lib/modules/$module.ko" || echo "moscope: $module does not load"
        done <"/lib/modules/order/$wanted"
    done
}

# present FILE-PATTERN VALUE: whether one of the files reads so.
present() {
    cat $1 2>/dev/null | grep -qx "$2"
}

present '/sys/bus/pci/devices/*/vendor' 0x1af4 && load virtio_pci
present '/sys/bus/virtio/devices/*/device' 0x0004 && load virtio_rng
present '/sys/bus/virtio/devices/*/device' 0x0002 && load virtio_blk
present '/sys/bus/virtio/devices/*/device' 0x0001 && load virtio_net
if [ -d /sys/class/net/eth0 ]; then
    ip addr add 10.1.0.1/16 dev eth0
    ip link set eth0 up
fi

root=
disk=/dev/vda
if [ -b $disk ]; then
    mkdir -p /disk/image
    if [ "$(dd if=$disk bs=4 count=1 2>/dev/null)" = hsqs ]; then
        load squashfs
        mount -t squashfs -o ro $disk /disk/image
    else
        mount -t ext4 $disk /disk/image
    fi || echo "moscope: $disk holds neither squashfs nor ext4; it is left alone"
    if [ -x /disk/image/bin/sh ] || [ -L /disk/image/bin/sh ]; then
        root=/disk/root
        mkdir -p /disk/layer $root
        load overlay
        mount -t tmpfs tmpfs /disk/layer
        mkdir /disk/layer/upper /disk/layer/work
        mount -t overlay -o lowerdir=/disk/image,upperdir=/disk/layer/upper,workdir=/disk/layer/work overlay $root ||
            root=/disk/image
        for folder in proc sys dev run; do mount --rbind /$folder $root/$folder; done
        mount -t tmpfs tmpfs $root/tmp
    fi
fi

# Programs that came along are found on both sides of the root.
[ -z "$root" ] || { mkdir -p $root/run/moscope && cp -a /moscope/. $root/run/moscope/; }
[ -n "$root" ] || { mkdir -p /run/moscope && cp -a /moscope/. /run/moscope/; }
within() {
    if [ -n "$root" ]; then chroot $root "$@"; else "$@"; fi
}

cd /
echo "moscope: ready"
if [ -f /moscope/script ]; then
    if [ "$(head -c 2 /moscope/script)" = '#!' ]; then
        within /run/moscope/script </dev/null
    else
        within /bin/sh /run/moscope/script </dev/null
    fi
    echo "moscope: script ended with status $?"
elif [ -n "$root" ]; then
    setsid cttyhack chroot $root /bin/sh -i
else
    setsid cttyhack sh -i
fi
sync
poweroff -f
