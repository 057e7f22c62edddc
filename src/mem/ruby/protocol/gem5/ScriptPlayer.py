# SPDX-License-Identifier: BSD-3-Clause
"""A gem5 object that plays a script of accesses; script_player.hh describes it."""

from m5.objects.ClockedObject import ClockedObject
from m5.params import Param, VectorRequestPort
from m5.proxy import Parent


class ScriptPlayer(ClockedObject):
    type = "ScriptPlayer"
    cxx_header = "gem5/script_player.hh"
    cxx_class = "gem5::ScriptPlayer"

    system = Param.System(Parent.any, "System that the accesses go to")
    ports = VectorRequestPort("One port per core, to its sequencer")
    script = Param.String("File of accesses: STEP CORE OP ADDRESS on each line")
    answers = Param.String("File that is written: what each access saw, and when")
    settle = Param.Latency("5us", "From the end of a step to the next, until nothing is under way")
