# SPDX-License-Identifier: BSD-3-Clause
"""Plays scripted accesses on a machine: `gem5.opt play_script.py JOB.json`. JOB has "script", a file of accesses, and
"settle_fs"; what each access saw goes to accesses.txt in gem5's output folder (script_player.hh has both formats)."""

import machine_system

job = machine_system.job_file()
try:
    from m5.objects import ScriptPlayer
except ImportError:
    machine_system.stop("no ScriptPlayer in this gem5: one built with EXTRAS naming moscope's src/mem/ruby/protocol whole")
built = machine_system.build(job)
player = ScriptPlayer(script=job["script"], answers="accesses.txt", settle=f"{job['settle_fs']}fs")
built.system.player = player
for sequencer in built.sequencers:
    player.ports = sequencer.in_ports
machine_system.simulate(built.system)
