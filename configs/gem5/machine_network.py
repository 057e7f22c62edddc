# SPDX-License-Identifier: BSD-3-Clause
"""The crossbars and HyperTransport links of a machine on gem5's simple network; run by gem5.

That network has one latency per link, whatever the packet's length, and delivers a packet before it is off the wire.
So there is a link for each length of packets beside the others, and `RoutingBySize` chooses among them. Each of them
has the wire's whole bandwidth. All latencies are whole cycles of the network's clock, the northbridge's."""

from fractions import Fraction
from typing import Any

from m5.objects import SimpleExtLink, SimpleIntLink, SimpleNetwork, Switch

# The simple network counts a thousandth of a byte as one unit of bandwidth.
UNITS_PER_BYTE = 1000


def cycles(fs, period):
    """The nearest number of whole cycles, one at least."""
    return max(1, round(Fraction(fs) / period))


def bytes_per_fs(link):
    """One way; two transfers per clock."""
    return Fraction(link["width_bits"] * link["clock_hz"] * 2, 8 * 10**15)


def lengths(shape):
    """The lengths of the packets that cross links, in bytes, ascending, and which of them a packet has: by virtual
    network, without and with data."""
    by_vnet = []
    for vnet in range(1 + max(map(int, shape["vnet_channel"]))):
        channel = shape["vnet_channel"].get(str(vnet), "request")
        by_vnet.append([shape["packet_bytes"][channel + part] for part in ("", "_data")])
    different = sorted({size for sizes in by_vnet for size in sizes})
    return different, [different.index(size) for sizes in by_vnet for size in sizes]


def link_latency_fs(shape, link, size):
    """One way over a link, until the last byte is there, and through the crossbar before it."""
    return link["latency_fs"] + size / bytes_per_fs(link) + shape["router"]["latency_fs"]


def vnets_beside(description):
    """How many virtual networks there are besides the protocol's, one for each length of packets but one: gem5 wants
    links between the same routers to carry different ones."""
    return len(lengths(description["network"])[0]) - 1


def create(description, ruby, clock_domain, vnets):
    """The network without its shape, for the controllers' buffers to connect to; `vnets` is the protocol's."""
    return SimpleNetwork(
        ruby_system=ruby,
        number_of_virtual_networks=vnets + vnets_beside(description),
        clk_domain=clock_domain,
        control_msg_size=description["network"]["packet_bytes"]["request"],
        data_msg_size=description["line_bytes"],
        endpoint_bandwidth=1,
        topology="of the machine description",
    )


def connect(network, description, controllers, vnets):
    """Routers and links; `controllers` are pairs of description and object."""
    from m5.objects import RoutingBySize

    shape = description["network"]
    sizes, ways = lengths(shape)
    carried = [list(range(vnets)), *([vnets + n] for n in range(len(sizes) - 1))]
    clock = shape["router"]["clock"]
    period = Fraction(clock["period_num"], clock["period_den"])
    network.routers = routers = [
        Switch(router_id=n, int_routing_latency=0, ext_routing_latency=0, routing_unit=RoutingBySize(ways=ways))
        for n in range(shape["routers"])
    ]
    network.ext_links = [
        SimpleExtLink(
            link_id=number,
            ext_node=controller,
            int_node=routers[described["chip"]],
            latency=cycles(shape["router"]["latency_fs"], period),
            bandwidth_factor=shape["router"]["port_bytes_per_cycle"] * UNITS_PER_BYTE,
        )
        for number, (described, controller) in enumerate(controllers)
    ]
    links: list[Any] = []
    for link in shape["links"]:
        bytes_per_cycle = bytes_per_fs(link) * period
        for a, b in ((link["a"], link["b"]), (link["b"], link["a"])):
            links += [
                SimpleIntLink(
                    link_id=len(controllers) + len(links) + n,
                    src_node=routers[a],
                    dst_node=routers[b],
                    latency=cycles(link_latency_fs(shape, link, size), period),
                    bandwidth_factor=max(1, round(bytes_per_cycle * UNITS_PER_BYTE)),
                    supported_vnets=carried[n],
                )
                for n, size in enumerate(sizes)
            ]
    network.int_links = links
    network.netifs = []
    network.setup_buffers()
