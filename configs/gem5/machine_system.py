# SPDX-License-Identifier: BSD-3-Clause
"""A machine description on gem5: System and RubySystem from the JSON that `moscope` writes (moscope.gem5/1: the
elaborated machine, the protocol's interface and the job). Run by gem5; knows no protocol but by its interface."""

import json
import sys
import time
from fractions import Fraction
from typing import Any

import m5
from m5.defines import buildEnv
from m5.objects import (
    FIFORP,
    LRURP,
    AddrRange,
    DMASequencer,
    MessageBuffer,
    RandomRP,
    RubyCache,
    RubyDirectoryMemory,
    RubyPortProxy,
    RubySequencer,
    RubySystem,
    SrcClockDomain,
    System,
    TreePLRURP,
    VoltageDomain,
)

import machine_memory
import machine_network

FS_PER_S = 10**15
# What a home asks of memory arrives in its order, also where the random tester delays messages: a home reads a line
# again without waiting until its last write is done.
TO_MEMORY = "requestToMemory"
REPLACEMENT = {"lru": LRURP, "tree_plru": TreePLRURP, "fifo": FIFORP, "random": RandomRP}
# Cycles after which gem5's sequencers take a request for stuck: far above what contention of all cores takes.
DEADLOCK_CYCLES = 500_000_000


def say(message):
    """To the launcher (moscope/gem5/binary.py)."""
    print(f"moscope-gem5: {message}", flush=True)


def stop(message):
    """What the user did wrong, for the launcher to pass on."""
    say(message)
    sys.exit(1)


def job_file():
    """The JSON named on the command line."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    built, wanted = buildEnv["PROTOCOL"], job["machine"]["protocol"]
    if built != wanted:
        stop(f"wrong protocol: {built}: a gem5 built with {wanted}")
    return job


def period_of(clock):
    return Fraction(clock["period_num"], clock["period_den"])


class Built:
    """The system, and what jobs connect to."""

    def __init__(self, system, sequencers, dma_sequencers):
        self.system = system
        self.sequencers = sequencers
        self.dma_sequencers = dma_sequencers


def cache(array, line_bytes):
    """An array of the description, indexed by the address bits above the line's."""
    return RubyCache(
        size=f"{array['bytes']}B",
        assoc=array["ways"],
        start_index_bit=line_bytes.bit_length() - 1,
        replacement_policy=REPLACEMENT[array["replacement"]](),
    )


def plain_parameters(described, description):
    """Numbers and flags of a controller; the way to memory is shorter by what gem5's memory adds."""
    values = {name: value for name, value in described["params"].items() if not isinstance(value, dict)}
    if "to_memory_controller_latency" in values:
        period = period_of(description["clocks"][described["clock"]])
        extra = machine_memory.extra_fs(description["dram"], description["line_bytes"], period)
        values["to_memory_controller_latency"] = max(1, values["to_memory_controller_latency"] - round(extra / period))
    return values


def is_ordered(buffer, interface):
    """The receiving end keeps a virtual network's order, on both engines only from the network on: a home may send messages with
    different latencies, and gem5 ends where a later one overtakes another in an ordered buffer."""
    if buffer["name"] == TO_MEMORY:
        return True
    receivers = [b for m in interface["machines"] for b in m["buffers"] if b["network"] == "From" and b["vnet"] == buffer["vnet"]]
    if buffer["network"] == "To" and any(b["ordered"] for b in receivers):
        return False
    return bool(buffer["ordered"])


def controller(described, description, interface, ruby, clocks):
    """One controller of the protocol with its arrays and buffers."""
    machine = next(m for m in interface["machines"] if m["type"] == described["machine"])
    made = getattr(m5.objects, described["machine"] + "_Controller")(
        version=described["version"],
        ruby_system=ruby,
        clk_domain=clocks[described["clock"]],
        transitions_per_cycle=described["transitions_per_cycle"],
        number_of_TBEs=65536,  # the embedded engine's tables have no limit
    )
    for name, value in described["params"].items():
        if isinstance(value, dict):
            setattr(made, name, cache(value, description["line_bytes"]))
    for name, value in plain_parameters(described, description).items():
        setattr(made, name, value)
    for buffer in machine["buffers"]:
        setattr(made, buffer["name"], MessageBuffer(ordered=is_ordered(buffer, interface)))
        if buffer["network"] == "To":
            getattr(made, buffer["name"]).out_port = ruby.network.in_port
        elif buffer["network"] == "From":
            getattr(made, buffer["name"]).in_port = ruby.network.out_port
    return made, machine


def data_array(machine, made):
    """The array that gem5's sequencer looks at for load-linked: the first-level data cache."""
    names = [p["name"] for p in machine["params"] if p["type"] == "CacheMemory"]
    return getattr(made, next((n for n in names if "dcache" in n.lower()), names[0]))


def build(job, *, tick_fs=1, max_outstanding=None, spread_from_bit=None, mem_mode="timing"):
    """System with Ruby, not yet instantiated. Clock periods are whole ticks, one at least; `spread_from_bit` as for
    machine_memory.ranges."""
    description, interface = job["machine"], job["interface"]
    m5.ticks.setGlobalFrequency(FS_PER_S // tick_fs)
    system = System(mem_mode=mem_mode, mmap_using_noreserve=True, cache_line_size=description["line_bytes"])
    system.mem_ranges = [AddrRange(n["base"], size=n["bytes"]) for n in description["address_map"]]
    system.voltage_domain = VoltageDomain()
    clocks = {}
    for name, clock in description["clocks"].items():
        period = max(1, round(period_of(clock) / tick_fs)) * tick_fs
        clocks[name] = SrcClockDomain(clock=f"{period}fs", voltage_domain=system.voltage_domain)
        # The system's own clock is the cores': an object has one place only.
        setattr(system, "clk_domain" if name == "core" else f"{name}_clock", clocks[name])
    system.ruby = ruby = RubySystem(block_size_bytes=description["line_bytes"], memory_size_bits=48, clk_domain=clocks["nb"])
    vnets = 1 + max(b["vnet"] for m in interface["machines"] for b in m["buffers"] if b["network"])

    ruby.network = machine_network.create(description, ruby, clocks["nb"], vnets)

    made: list[Any] = []
    sequencers: list[Any] = []
    dma: list[Any] = []
    homes: list[Any] = []
    for described in description["controllers"]:
        one, machine = controller(described, description, interface, ruby, clocks)
        for parameter in machine["params"]:
            if parameter["type"] == "Sequencer":
                one.mandatory_queue_latency = described["sequencer"]["hit_cycles"]
                sequencer = RubySequencer(
                    version=len(sequencers),  # the core's number, also where a controller has several
                    ruby_system=ruby,
                    clk_domain=clocks[described["clock"]],
                    dcache=data_array(machine, one),
                    max_outstanding_requests=max_outstanding or described["sequencer"]["max_outstanding"],
                    deadlock_threshold=DEADLOCK_CYCLES,
                )
                setattr(one, parameter["name"], sequencer)
                sequencers.append(sequencer)
            elif parameter["type"] == "DMASequencer":
                sequencer = DMASequencer(version=described["version"], ruby_system=ruby)
                setattr(one, parameter["name"], sequencer)
                dma.append(sequencer)
            elif parameter["type"] == "DirectoryMemory":
                setattr(one, parameter["name"], RubyDirectoryMemory())
        setattr(ruby, f"{described['machine']}_{described['version']}", one)
        made.append((described, one))
        if described["role"] == "home":
            homes.append(one)

    machine_network.connect(ruby.network, description, made, vnets)
    ruby.num_of_sequencers = len(sequencers)
    ruby.number_of_virtual_networks = ruby.network.number_of_virtual_networks
    ranges = machine_memory.ranges(description, spread_from_bit)
    system.memory_controllers = machine_memory.controllers(description, ranges)
    for home, memory, range_ in zip(homes, system.memory_controllers, ranges, strict=True):
        home.addr_ranges = [range_]
        memory.port = home.memory_out_port
    system.system_proxy = RubyPortProxy(ruby_system=ruby)
    system.system_port = system.system_proxy.in_ports
    return Built(system, sequencers, dma)


def simulate(system):
    """To the end, whatever it is; tells the launcher why it ended and how long the host took."""
    m5.objects.Root(full_system=False, system=system)
    m5.instantiate()
    began = time.monotonic()
    end = m5.simulate()
    say(f"ended: {end.getCause()}: {time.monotonic() - began:.3f} s")
    return end
