# SPDX-License-Identifier: BSD-3-Clause
"""What the network card of a guest and its link count (parameters: nic.py)."""

from moscope.schema.describe import Counter, Counters, Enumeration, Member

DROP = Enumeration("Drop", "Drops", "Why the network card dropped a frame.", {
    "fifo_full": Member("the receive FIFO had no room", "receive FIFO full"),
    "no_buffer": Member("the driver had left no buffer, or too few, in the queue", "no receive buffer"),
    "not_ready": Member("the driver had not started the device, or reset it before the frame was moved", "driver not ready"),
    "bad_request": Member("a frame to be sent was shorter than its header, longer than 1518 bytes, or asked for an offload that was "
                          "not offered", "bad request"),
}, counted=False, namespace="moscope::dev")

CARD = Counters("CardStats", "What the network card and its link count.", (
    Counter("in_packets", "frames", "frames that reached the guest's buffers"),
    Counter("in_bytes", "bytes", "bytes of `in_packets`"),
    Counter("out_packets", "frames", "frames that reached the link"),
    Counter("out_bytes", "bytes", "bytes of `out_packets`"),
    Counter("in_busy_ns", "ns", "time that the card itself takes for received packets, according to its packet limits; 0 without limits"),
    Counter("out_busy_ns", "ns", "the same for sent packets"),
    Counter("dropped", "frames", "dropped frames, as `dropped_REASON`", each=DROP),
    Counter("deepest_fifo_bytes", "bytes", "the largest number of bytes in the receive FIFO since the boot, also in a point of a run",
            maximum=True),
    Counter("link_lost", "frames", "frames that the link lost because of `nic.lost`"),
    Counter("link_duplicated", "frames", "frames that arrived twice because of `nic.duplicated`"),
    Counter("link_delayed", "frames", "frames that were late because of `nic.delayed`"),
), namespace="moscope::dev")

# Keys of the card's counts in files.
DROPS = tuple(f"dropped_{reason}" for reason in DROP.names)
MAXIMA = tuple(counter.name for counter in CARD.counters if counter.maximum)

DESCRIPTIONS = (DROP, CARD)
