# SPDX-License-Identifier: BSD-3-Clause
"""gem5's trace and statistics as data, from texts in their form."""

from moscope.gem5.random_test import reached
from moscope.gem5.trace import Transition, received, statistics, transitions

TRACE = """\
         416667   0        Seq               Begin       >       [0x10040, line 0x10040] LD
        1666668   0    L1Cache                Load      I>IS     [0x10040, line 0x10040]
warn: something else on the way
        3000000   7  Directory                Load     NP>BM     [0x10040, line 0x10040]
        3100000   7  Directory               Store     BM>BM     [0x10040, line 0x10040] Resource Stall
        3200000  12    L3Cache    Last_Answer_Held      C>C      [0x20080, line 0x20080]
        4000000   0        Seq                Done       >       [0x10040, line 0x10040] 9 cycles
"""

STATS = """
---------- Begin Simulation Statistics ----------
simSeconds                                   0.5                       # Number of seconds simulated (Second)
system.ruby.L1Cache_0.responseToCore.m_msg_count           99                       # messages
---------- End Simulation Statistics   ----------

---------- Begin Simulation Statistics ----------
simSeconds                                   0.000100                       # Number of seconds simulated (Second)
simTicks                                  nan                       # no number of use
system.ruby.L1Cache_0.responseToCore.m_msg_count            3                       # messages
system.ruby.L1Cache_11.responseToCore.m_msg_count            4                       # messages
system.ruby.Directory_0.requestToHome.m_msg_count            5                       # messages
system.ruby.Directory_0.requestToHome.m_stall_count            1                       # stalls
system.ruby.network.routers00.port_buffers01.m_msg_count            8                       # of no controller
---------- End Simulation Statistics   ----------
"""


def test_transitions_are_read_without_sequencers_stalls_and_remarks() -> None:
    assert list(transitions(TRACE.splitlines())) == [
        (1666668, Transition("L1Cache", 0, "Load", "I", "IS", 0x10040)),
        (3000000, Transition("Directory", 7, "Load", "NP", "BM", 0x10040)),
        (3200000, Transition("L3Cache", 12, "Last_Answer_Held", "C", "C", 0x20080)),
    ]


def test_statistics_are_those_of_the_last_dump() -> None:
    values = statistics(STATS)
    assert values["simSeconds"] == 0.0001
    assert "Begin" not in values


def test_messages_are_added_up_by_machine_and_buffer() -> None:
    assert received(statistics(STATS)) == {("L1Cache", "responseToCore"): 7, ("Directory", "requestToHome"): 5}


def test_transitions_are_counted_of_one_controller_and_of_many() -> None:
    values = statistics("""\
system.ruby.Directory_Controller.NP.Load            7      0.00%      0.00% (Unspecified)
system.ruby.Directory_Controller.Load               9      0.00%      0.00% (Unspecified)
system.ruby.L1Cache_Controller.I.Load    |           3     60.00%     60.00% |           2     40.00%    100.00% (Unspecified)
system.ruby.L1Cache_Controller.I.Load::total            5                       (Unspecified)
system.ruby.L1Cache_Controller.I.Store::total            0                       (Unspecified)
""")
    assert reached(values) == {"Directory.NP.Load", "L1Cache.I.Load"}
