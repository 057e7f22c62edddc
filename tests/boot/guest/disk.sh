# SPDX-License-Identifier: BSD-3-Clause
# The virtio disk: read whole, written through the page cache and past it, read again; entropy; who interrupts.
echo "sectors $(cat /sys/block/vda/size)"
echo "read $(md5sum < /dev/vda | cut -d' ' -f1)"
dd if=/dev/zero of=/dev/vda bs=1000 count=300 seek=77 conv=fsync,notrunc 2>/dev/null
dd if=/dev/vda of=/dev/vda bs=4096 count=50 skip=10 seek=200 iflag=direct oflag=direct conv=notrunc 2>/dev/null
echo 3 > /proc/sys/vm/drop_caches
echo "written $(md5sum < /dev/vda | cut -d' ' -f1)"
echo "entropy $(dd if=/dev/hwrng bs=64 count=4 2>/dev/null | wc -c)"
grep -c 'PCI-MSI.*virtio' /proc/interrupts | sed 's/^/messages /'
grep -c 'IO-APIC.*virtio' /proc/interrupts | sed 's/^/wires /'
echo end
