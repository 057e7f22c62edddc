# SPDX-License-Identifier: BSD-3-Clause
"""The functions and types without a body in protocols that moscope's runtime implements. docs/slicc.md is checked against this
table. Everything that the prelude declares is supported, except NOT_IMPLEMENTED. The other functions of controllers, and types
of tables and queues, are declared by the protocols themselves, as in gem5."""
from __future__ import annotations

from dataclasses import dataclass

FOREIGN = "mem/ruby/runtime/foreign"


@dataclass(frozen=True)
class Supported:
    """An external type: the header that its C++ is in ("" for what every protocol includes), and its methods by name."""

    header: str
    methods: frozenset[str]
    is_template: bool = False


def _type(header: str, methods: str, is_template: bool = False) -> Supported:
    return Supported(f"{FOREIGN}/{header}" if header else "", frozenset(methods.split()), is_template)


FUNCTIONS: dict[str, tuple[int, ...]] = {
    "clockEdge": (0, 1), "curCycle": (0,), "curTick": (0,), "ticksToCycles": (1,), "cyclesToTicks": (1,),
    "mapAddressToMachine": (2,), "profileMsgDelay": (2,),
    "set_cache_entry": (1,), "unset_cache_entry": (0,), "set_tbe": (1,), "unset_tbe": (0,),
    "scheduleEvent": (1,), "mapAddressToDownstreamMachine": (1,), "allUpstreamDest": (0,), "respondsTo": (1,),
    "curTransitionEvent": (0,), "curTransitionNextState": (0,),
    "incomingTransactionStart": (4, 5), "incomingTransactionEnd": (2, 3),
    "outgoingTransactionStart": (2, 3), "outgoingTransactionEnd": (2, 3),
    "queueMemoryRead": (3, 4, 5, 6),
    "wakeUpBuffer": (1,), "wakeUpBuffers": (1,), "wakeUpAllBuffers": (0, 1),
}
"""Functions that a protocol declares and moscope defines, and how many arguments they take."""

PROTOTYPES = {
    "clockEdge": "Tick clockEdge()", "curCycle": "Cycles curCycle()", "curTick": "Tick curTick()",
    "ticksToCycles": "Cycles ticksToCycles(Tick t)", "cyclesToTicks": "Tick cyclesToTicks(Cycles c)",
    "mapAddressToMachine": "MachineID mapAddressToMachine(Addr a, MachineType type)",
    "scheduleEvent": "void scheduleEvent(Cycles c)", "respondsTo": "bool respondsTo(Addr a)",
    "mapAddressToDownstreamMachine": "MachineID mapAddressToDownstreamMachine(Addr a)", "allUpstreamDest": "NetDest allUpstreamDest()",
    "wakeUpBuffers": "void wakeUpBuffers(Addr a)", "wakeUpAllBuffers": "void wakeUpAllBuffers()",
}
"""How a protocol declares those that most protocols use."""

TYPES: dict[str, Supported] = {
    "TBETable": _type("", "lookup allocate deallocate isPresent areNSlotsAvailable getNullEntry", True),
    "PerfectCacheMemory": _type("", "lookup allocate deallocate isTagPresent", True),
    "TBEStorage": _type("tbe_storage.hh", "size capacity reserved slotsAvailable areNSlotsAvailable incrementReserved decrementReserved "
                                          "addEntryToNewSlot addEntryToSlot removeEntryFromSlot"),
    "TriggerQueue": _type("trigger_queue.hh", "front back frontNB backNB next empty push pushNB pushFront pushFrontNB pop emplace", True),
    "PersistentTable": _type("persistent_table.hh", "persistentRequestLock persistentRequestUnlock okToIssueStarving findSmallest "
                                                    "typeOfSmallest markEntries isLocked countStarvingForAddress "
                                                    "countReadStarvingForAddress"),
    "ExpectedMap": _type("expected_map.hh", "clear addExpectedRespType addExpectedDataType setExpectedCount addExpectedCount hasExpected "
                                            "hasReceivedResp hasReceivedData expected received receiveResp receiveData receivedDataType "
                                            "receivedRespType", True),
    "MN_TBETable": _type("misc_node.hh", "lookup allocate deallocate isPresent areNSlotsAvailable chooseNewDistributor", True),
    "MN_TBEStorage": _type("misc_node.hh", "size capacity reserved slotsAvailable areNSlotsAvailable incrementReserved decrementReserved "
                                           "addEntryToNewSlot removeEntryFromSlot emplaceRetryEntry hasPossibleRetry "
                                           "popNextRetryEntry", True),
    "GPUCoalescer": _type("gpu_coalescer.hh", "readCallback writeCallback atomicCallback evictionCallback recordCPReadCallBack "
                                              "recordCPWriteCallBack"),
    "VIPERCoalescer": _type("gpu_coalescer.hh", "readCallback writeCallback atomicCallback evictionCallback invTCPCallback "
                                                "invTCCCallback writeCompleteCallback"),
}
"""Types that a protocol declares with `external="yes"` and moscope defines. Their methods may be overloaded as gem5's are."""

COUNTED = ("TBETable", "TBEStorage", "MN_TBETable", "MN_TBEStorage")
"""Types of objects that count their places. The last argument of the constructor is the number of places."""

NOT_IMPLEMENTED: dict[str, frozenset[str]] = {
    "Set": frozenset({"addRandom()", "broadcast()"}),
    "NetDest": frozenset({"add(NodeID)", "remove(NodeID)", "addSet(Set)", "removeSet(Set)", "addRandom()", "isElement(NodeID)",
                          "isSuperset(Set)", "intersectionIsEmpty(Set)", "toSet()"}),
    "OutPort": frozenset({"enqueueDeferredMessages(Addr,Tick,Tick)", "isDeferredMsgMapEmpty(Addr)"}),
}
"""Methods that the prelude declares, as gem5's prelude does, but moscope does not define."""

_PRELUDE_HEADERS = {"HtmCacheEntry": f"{FOREIGN}/htm_entry.hh", "RubyPrefetcherProxy": f"{FOREIGN}/no_prefetch.hh",
                    "prefetch::Base": f"{FOREIGN}/no_prefetch.hh"}
"""Headers of types that the prelude declares, or the emitter uses, but only few protocols need."""

HTM_METHODS = frozenset({"setInHtmReadSet", "setInHtmWriteSet", "getInHtmReadSet", "getInHtmWriteSet"})
"""Methods that a cache entry may declare without a body."""

PARAMETERS = frozenset({"MessageBuffer", "WireBuffer", "CacheMemory", "DirectoryMemory", "Sequencer", "HTMSequencer", "DMASequencer",
                        "RubyPrefetcher", "prefetch::Base", "GPUCoalescer", "VIPERCoalescer"})
"""Types of a machine's parameters besides plain values."""


DEBUG_FLAGS = ("HtmMem", "LLSC", "ProtocolTrace", "RubyCache", "RubyCacheTrace", "RubyDma", "RubyGenerated", "RubyHitMiss", "RubyNetwork",
               "RubyPort", "RubyPrefetcher", "RubyProtocol", "RubyQueue", "RubyResourceStalls", "RubySequencer", "RubySlicc", "RubyStats",
               "RubySystem", "RubyTester")
"""Flags of DPRINTF in gem5 24 (src/mem/ruby/SConscript). A gem5 tree may have others."""


def headers(names: set[str]) -> list[str]:
    """The headers to include for the C++ of the types with these names."""
    return sorted({TYPES[name].header for name in names if name in TYPES and TYPES[name].header}
                  | {header for name, header in _PRELUDE_HEADERS.items() if name in names})
