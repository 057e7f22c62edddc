# SPDX-License-Identifier: BSD-3-Clause
"""The crossbars and HyperTransport links of a machine on gem5's simple network; run by gem5.

That network has one latency per link, whatever the packet's length, and delivers a packet before it is off the wire.
So a link's latency here is the wire's and half of what a request and a line together take: a read has one of each on
its way, and its latency is right. All latencies are whole cycles of the network's clock, the northbridge's."""

from fractions import Fraction

from m5.objects import SimpleExtLink, SimpleIntLink, SimpleNetwork, Switch

# The simple network counts a thousandth of a byte as one unit of bandwidth.
UNITS_PER_BYTE = 1000


def cycles(fs, period):
    """The nearest number of whole cycles, one at least."""
    return max(1, round(Fraction(fs) / period))


def bytes_per_fs(link):
    """One way; two transfers per clock."""
    return Fraction(link["width_bits"] * link["clock_hz"] * 2, 8 * 10**15)


def link_latency_fs(shape, link):
    """One way over a link and through the crossbar behind it, for the mean of a request and a line of data."""
    sizes = shape["packet_bytes"]
    mean = Fraction(sizes["request"] + sizes["response_data"], 2) / bytes_per_fs(link)
    return link["latency_fs"] + mean + shape["router"]["latency_fs"]


def create(description, ruby, clock_domain, vnets):
    """The network without its shape, for the controllers' buffers to connect to."""
    return SimpleNetwork(
        ruby_system=ruby,
        number_of_virtual_networks=vnets,
        clk_domain=clock_domain,
        control_msg_size=description["network"]["packet_bytes"]["request"],
        data_msg_size=description["line_bytes"],
        endpoint_bandwidth=1,
        topology="of the machine description",
    )


def connect(network, description, controllers):
    """Routers and links; `controllers` are pairs of description and object."""
    shape = description["network"]
    clock = shape["router"]["clock"]
    period = Fraction(clock["period_num"], clock["period_den"])
    network.routers = routers = [
        Switch(router_id=n, int_routing_latency=0, ext_routing_latency=0) for n in range(shape["routers"])
    ]
    network.ext_links = [
        SimpleExtLink(
            link_id=number,
            ext_node=controller,
            int_node=routers[told["chip"]],
            latency=cycles(shape["router"]["latency_fs"], period),
            bandwidth_factor=shape["router"]["port_bytes_per_cycle"] * UNITS_PER_BYTE,
        )
        for number, (told, controller) in enumerate(controllers)
    ]
    links = []
    for link in shape["links"]:
        bytes_per_cycle = bytes_per_fs(link) * period
        for a, b in ((link["a"], link["b"]), (link["b"], link["a"])):
            links.append(
                SimpleIntLink(
                    link_id=len(controllers) + len(links),
                    src_node=routers[a],
                    dst_node=routers[b],
                    latency=cycles(link_latency_fs(shape, link), period),
                    bandwidth_factor=max(1, round(bytes_per_cycle * UNITS_PER_BYTE)),
                )
            )
    network.int_links = links
    network.netifs = []
    network.setup_buffers()
