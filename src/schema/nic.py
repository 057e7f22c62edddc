# SPDX-License-Identifier: BSD-3-Clause
"""The network card of a guest that has one (`--net`), in the place of the paper's Intel 82599, and the link to its clients."""

from __future__ import annotations

from moscope.schema.parameters import Described, Group, param
from moscope.schema.units import Count, Name, Size, Time


def steering_policies() -> list[str]:
    """Names of the policies, each of which registers itself (src/dev/nic)."""
    from moscope import _engine

    names: list[str] = _engine.steering_policies()
    return names


class Nic(Described):
    """The network card and its link. Packet limits are off by default, because the paper publishes only a few points: 5 million packets per
    second in other tests, 2.8 million received with 48 queues, and a send rate that falls beyond 16 cores. The curve between these points
    is fitted and assumed to be the same in both directions."""

    queues: Count = param("queue pairs, each with two interrupts; 0: one per core in use",
                          default=Count(0, "P: as many of the 82599's 64 as cores"), least=0, most=64)
    steering: Name = param("policy that chooses the receive queue of a frame", default=Name("rss", "P: spread, as for Apache on PK"),
                           choices=steering_policies)
    first_port: Count = param("destination port that `fixed-port` gives to queue 0",
                              default=Count(11211, "x: memcached's registered port"), least=1, most=65535)
    link_megabits: Count = param("megabits per second of the link, in each direction", default=Count(10000, "P: 10 Gbit Ethernet"),
                                 least=1, most=1000000)
    link_latency: Time = param("latency of link, switch and the client's card, one way", default=Time("5us", "assumed"), least="1ns",
                               most="100ms")
    in_per_second: Count = param("most packets per second that the card receives; 0: no limit",
                                 default=Count(0, "P: 2.8 M received at overflow, 5 M in other tests"), least=0, most=1000000000)
    out_per_second: Count = param("most packets per second that the card sends; 0: no limit",
                                  default=Count(0, "P: falls as queues are added; the amount is not published"), least=0, most=1000000000)
    full_rate_queues: Count = param("queue pairs up to which the card reaches `in_per_second` and `out_per_second`",
                                    default=Count(16, "P: memcached on PK falls after 16 cores, each with a queue pair"), least=1, most=64)
    queue_cost: Count = param("time that each queue pair in use beyond `full_rate_queues` adds to a packet's time in the card, in "
                              "thousandths of the latter",
                              default=Count(25, "fitted: 5 M packets/s with up to 16 queue pairs, 2.8 M with 48"), least=0, most=1000)
    in_fifo: Size = param("size of the receive FIFO; a frame that does not fit is dropped",
                          default=Size("512KiB", "x: Intel 82599 data sheet"), least="2KiB", most="1GiB")
    out_fifo: Size = param("size of the transmit FIFO; frames are fetched while it has room",
                           default=Size("160KiB", "x: Intel 82599 data sheet"), least="2KiB", most="1GiB")
    sent_together: Count = param("number of sent frames whose buffers a queue returns to the driver together; the 82599 counts descriptors "
                                 "instead", default=Count(8, "x: WTHRESH, as Linux's driver sets it"), least=1, most=64)
    sent_after: Time = param("time after which a queue returns the buffers of fewer frames than `sent_together`",
                             default=Time("10us", "assumed"), least="1ns", most="1ms")
    transfers: Count = param("most lines of the card's transfers in flight at a time",
                             default=Count(16, "d: 2.8 M packets/s each way, seven lines for a packet in and out"), least=1, most=256)
    lost: Count = param("frames in a million, of each direction, that the link loses at random",
                        default=Count(0, "none; for tests"), least=0, most=1000000)
    duplicated: Count = param("frames in a million that arrive twice", default=Count(0, "none; for tests"), least=0, most=1000000)
    delayed: Count = param("frames in a million that are late by up to 200 us, so that others overtake them",
                           default=Count(0, "none; for tests"), least=0, most=1000000)


DESCRIPTIONS = (Group("NicParams", Nic, "moscope::dev"),)
