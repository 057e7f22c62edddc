# SPDX-License-Identifier: BSD-3-Clause
"""Routing that chooses among links beside each other by a message's size; see routing_by_size.hh."""

from m5.objects.SimpleNetwork import BaseRoutingUnit
from m5.params import VectorParam


class RoutingBySize(BaseRoutingUnit):
    type = "RoutingBySize"
    cxx_header = "gem5/routing_by_size.hh"
    cxx_class = "gem5::ruby::RoutingBySize"

    ways = VectorParam.Int("For each virtual network, without and with data: the number of the parallel link to take")
