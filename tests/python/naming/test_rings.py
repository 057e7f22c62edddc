# SPDX-License-Identifier: BSD-3-Clause
"""Names of the rings of devices."""

from moscope.naming.rings import Rings


def test_a_byte_of_a_ring_has_the_name_of_the_device_and_its_neighbours_have_none() -> None:
    rings = Rings([("nic", 3, "used ring", 0x2000, 70), ("nic", 3, "descriptors", 0x1000, 64), ("disk", 0, "available ring", 0x3000, 6)])
    assert rings.at(0x1000) == ("ring of the network card", "device ring", "virtqueue 3", "descriptors")
    assert rings.at(0x2045) == ("ring of the network card", "device ring", "virtqueue 3", "used ring")
    assert rings.at(0x3005) == ("ring of the disk", "device ring", "virtqueue 0", "available ring")
    assert [rings.at(at) for at in (0xfff, 0x1040, 0x2046, 0x3006)] == [None] * 4
    assert Rings().at(0) is None
