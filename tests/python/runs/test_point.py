# SPDX-License-Identifier: BSD-3-Clause
"""A point's course, on a guest that is not real: windows, early ends, deaths, results."""

from dataclasses import replace
from typing import Any

import pytest
from fake_machine import MS, FakeNames, FakeSystem

from moscope import jsonio
from moscope.errors import GuestDied, SimulatorBug, WorkloadFailed
from moscope.guest import initramfs
from moscope.guest.kernel import Kernel
from moscope.runs import lines, no_operations, options, own_program
from moscope.runs import point as measured
from moscope.runs.guest import Guest, Progress
from moscope.runs.options import Point
from moscope.workloads import Results


def guest_of(system: FakeSystem, reported: list[Progress] | None = None) -> Guest:
    return Guest(system, (reported if reported is not None else []).append)  # type: ignore[arg-type]


def course(system: FakeSystem, point: Point, reported: list[Progress] | None = None) -> dict[str, Any]:
    """All of a point but the boot."""
    guest = guest_of(system, reported)
    measured.begin(guest, point)
    windows, stats, packed, _ = measured.detailed(guest, point)
    hottest = lines.Hottest(measured.name(FakeNames(), stats["attribution"], packed), system.physical_of)
    measured.finish(guest, point)
    chosen = Kernel("distro", __file__, "0" * 64, "6.1", None, "test")  # type: ignore[arg-type]
    return {**measured.document(point, windows, hottest, measured.memory_stall(stats), chosen), "host_s": 1.0}


def test_windows_count_what_happens_after_the_warm_up_and_only_that(point: Point) -> None:
    got = course(FakeSystem(), point)
    assert (got["ops"], got["window_ms"], len(got["windows"])) == (60, 2.0, 3)
    assert got["throughput_per_s"] == 10_000 and got["stderr_per_s"] == pytest.approx(10_000 / 6**0.5 / 60)
    assert got["cycles"] == {"busy": 0.25, "idle": 0.25, "core": 0.0, "memory": 0.5}
    assert got["kernel_share"] == pytest.approx(1 / 3)
    assert got["spin_cycles"] == 0.125 == got["windows"][1]["spin_cycles"]
    # 2 cores, 6 ms, half of it in user mode, 60 operations.
    assert got["user_us_per_op"] == pytest.approx(100) and got["system_us_per_op"] == pytest.approx(50)
    assert (got["instructions"], got["spin_instructions"]) == (6 * MS // 1000 * 3 // 4, 6 * MS // 4000)


def test_the_hosts_time_of_a_window_is_that_of_simulating_it(point: Point, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading its statistics takes longer than a short window, and belongs neither to it nor to the next."""
    now = [0.0]
    monkeypatch.setattr(measured.windows, "host_time", lambda: measured.windows.HostTime(now[0], now[0]))

    class Slow(FakeSystem):
        def step_until(self, until: int, host_ms: int) -> dict[str, Any]:
            now[0] += 1 if self.detailed else 0
            return super().step_until(until, host_ms)

        def stats_json(self) -> str:
            now[0] += 100
            return super().stats_json()

    got = course(Slow(), point)  # three windows of ten steps each, between which processes are observed
    assert [(w["host_s"], w["host_cpu_s"]) for w in got["windows"]] == [(10.0, 10.0)] * 3
    assert got["host_s_per_ms"] == 5.0


def test_processes_are_observed_at_fixed_simulated_times(point: Point) -> None:
    """However long the host takes for a step: names must not depend on it."""
    class Stopping(FakeSystem):
        """Ends each second step early, as a slow host does."""
        calls = 0

        def step_until(self, until: int, host_ms: int) -> dict[str, Any]:
            self.calls += 1
            if not self.detailed or self.calls % 2 or until - self.tick < 2:
                return super().step_until(until, host_ms)
            self.tick += (until - self.tick) // 2
            return {"state": "running", "detail": "", "status": 0}

    seen: list[list[int]] = []
    for system in (FakeSystem(), Stopping()):
        seen.append([])
        guest = measured.Guest(system, lambda progress: None)
        guest.observe = lambda system=system, to=seen[-1]: to.append(system.tick)
        system.detailed = system.running = True
        guest.until_time(system.tick + MS, lambda tick: 0.0)
    assert seen[0] == seen[1] != []


def test_processes_are_observed_before_detailed_time_in_which_they_may_end(point: Point) -> None:
    system = FakeSystem(ends_at=1.05)
    guest, seen = guest_of(system), list[bool]()
    guest.observe = lambda: seen.append(system.detailed)
    measured.begin(guest, point)
    measured.detailed(guest, point)
    assert seen[:2] == [False, True]


def test_the_document_is_what_its_schema_says(point: Point) -> None:
    got = course(FakeSystem(), point)
    jsonio.validate({"schema": "moscope.run/1", "ok": True, "machine": "m", "points": [got]})


def test_the_hottest_line_with_its_writer_and_waiter_stands_in_the_sentence(point: Point) -> None:
    got = course(FakeSystem(), point)
    assert got["top_lines"] == [{"name": "physical 0x1040", "address": "0x1040", "stall_share": 1.0, "wait_share": 1.0,
                                 "spin_share": 0.2, "transfers": 5,
                                 "class": "true_sharing", "writers": ["0x401000"], "waiters": ["0x402000"]}]
    assert got["bottleneck"] == ("waiting for memory (50 %) and in spin loops (12 %) takes 62 % of the cores' time, 100 % of it for "
                                 "physical 0x1040 (true sharing), which 0x402000 waits for and 0x401000 writes")


def bottleneck(busy: float, idle: float, core: float, memory: float, spin: float = 0.0) -> str:
    hottest = {"name": "lock", "class": "true_sharing", "wait_share": 0.9, "waiters": [], "writers": []}
    return lines.bottleneck({"cycles": {"busy": busy, "idle": idle, "core": core, "memory": memory}, "spin_cycles": spin}, [hottest])


@pytest.mark.parametrize(("parts", "sentence"), [
    ((0.25, 0.45, 0.0, 0.3), "the cores are idle for 45 % of their time: too little work reaches them; waiting for memory takes 30 %"),
    ((0.02, 0.49, 0.03, 0.46), "the cores are idle for 49 % of their time: too little work reaches them; waiting for memory takes 46 %"),
    ((0.4, 0.4, 0.0, 0.2, 0.15), "the cores are idle for 40 % of their time: too little work reaches them; waiting for memory (20 %) and "
                                 "in spin loops (15 %) takes 35 %"),
    ((0.5, 0.3, 0.0, 0.2), "the cores compute for 50 % of their time; 20 % goes to waiting for memory; the cores are idle for 30 %"),
    ((0.2, 0.25, 0.4, 0.15), "stalls inside the cores take 40 % of their time; 15 % goes to memory; the cores are idle for 25 %"),
    ((0.86, 0.09, 0.0, 0.05), "the cores compute for 86 % of their time; 5 % goes to waiting for memory"),
    ((0.3, 0.35, 0.0, 0.35), "waiting for memory takes 35 % of the cores' time, 90 % of it for lock (true sharing)"),
])
def test_idle_cores_are_named_where_they_are_the_largest_part_or_a_tenth(parts: tuple[float, ...], sentence: str) -> None:
    assert bottleneck(*parts) == sentence


def test_stall_that_is_lost_on_the_way_to_names_is_a_simulator_bug(point: Point) -> None:
    system = FakeSystem()
    guest = guest_of(system)
    measured.begin(guest, point)
    _, stats, tables, _ = measured.detailed(guest, point)
    with pytest.raises(SimulatorBug, match="stall: all lines have 0 fs"):
        measured.name(FakeNames(), stats["attribution"], (b"", b"", b""))
    with pytest.raises(SimulatorBug, match="spin: all lines have 1500000000000 fs, all cores 1500000000001"):
        measured.name(FakeNames(), stats["attribution"] | {"spin": stats["attribution"]["spin"] + 1}, tables)
    assert measured.name(FakeNames(), stats["attribution"], tables).lines.num_rows == 1


def test_leaving_detailed_mode_takes_steps_between_which_an_interruption_ends_it(point: Point) -> None:
    class Interrupted(FakeSystem):
        def leave_detailed(self, host_ms: int) -> bool:
            if self.steps_to_leave < 1_000_000 - 5:
                raise KeyboardInterrupt  # as the interpreter does when it runs
            return super().leave_detailed(host_ms)

    with pytest.raises(KeyboardInterrupt):
        course(Interrupted(steps_to_leave=1_000_000), point)


class Uneven(FakeSystem):
    """The operations of every third millisecond take no time, the others' all of it."""

    def counts(self) -> dict[str, int]:
        found = super().counts()
        ms = (self.tick - self.begun) // MS if self.detailed else 0
        return {**found, "operations": found["operations"] + 100 * (ms // 3)}


@pytest.mark.parametrize(("system", "limit", "windows", "met"), [(FakeSystem(), 50, 10, True), (Uneven(), 50, 50, False),
                                                                 (Uneven(), 12, 12, False)])
def test_windows_end_when_their_error_is_small_enough_or_at_the_limit(point: Point, system: FakeSystem, limit: int, windows: int,
                                                                      met: bool) -> None:
    got = course(system, replace(point, window=MS, windows=limit, until_error=0.01))
    assert len(got["windows"]) == windows
    assert (got["until_error"]["windows"], got["until_error"]["limit"], got["until_error"]["met"]) == (windows, limit, met)
    jsonio.validate({"schema": "moscope.run/1", "ok": True, "machine": "opteron48", "points": [{**got, "host_s": 1.0}]})


@pytest.mark.parametrize(("cycle", "windows"), [(5 * MS, 10), (6 * MS, 12), (6 * MS + 1, 13), (10 * MS, 20)])
def test_windows_do_not_end_before_two_cycles_of_the_workload(point: Point, cycle: int, windows: int) -> None:
    got = course(FakeSystem(), replace(point, window=MS, windows=20, until_error=0.01, cycle=cycle))
    assert len(got["windows"]) == windows and got["until_error"]["met"]


@pytest.mark.parametrize(("windows", "known"), [(3, False), (9, False), (10, True), (12, True)])
def test_the_error_of_fewer_than_two_cycles_of_the_workload_is_not_known(point: Point, windows: int, known: bool) -> None:
    got = course(FakeSystem(), replace(point, window=MS, windows=windows, until_error=0.5, cycle=5 * MS))
    assert (got["stderr_per_s"] is not None) is known
    assert {(one["stderr"] is not None, one["half_width"] is not None) for one in got["confidence"]["figures"].values()} == {(known, known)}
    assert (got["until_error"]["reached"] is not None, got["until_error"]["met"]) == (known, known)
    assert got["until_error"]["why"] is None if known else "fewer than two periods" in got["until_error"]["why"]
    jsonio.validate({"schema": "moscope.run/1", "ok": True, "machine": "opteron48", "points": [{**got, "host_s": 1.0}]})


def test_without_a_wanted_error_every_window_is_measured_and_has_intervals(point: Point) -> None:
    got = course(FakeSystem(), replace(point, window=MS, windows=12))
    assert len(got["windows"]) == 12 and "until_error" not in got
    least = 10_000 / 6**0.5 / 120
    assert got["confidence"]["figures"]["throughput_per_s"] == {
        "value": pytest.approx(10_000), "stderr": pytest.approx(least), "half_width": pytest.approx(2.201 * least)}


@pytest.mark.parametrize(("wanted", "windows"), [(0.05, 10), (0.03, 14)])
def test_windows_of_one_operation_each_end_when_there_are_enough_operations(point: Point, wanted: float, windows: int) -> None:
    got = course(FakeSystem(), replace(point, window=MS // 10, windows=50, until_error=wanted))
    assert [w["ops"] for w in got["windows"]] == [1] * windows and got["until_error"]["met"]
    assert got["until_error"]["reached"] == pytest.approx(1 / 6**0.5 / windows)


def test_a_workload_that_ends_early_leaves_the_windows_that_were_whole(point: Point) -> None:
    got = course(FakeSystem(ends_at=5.5), point)
    assert [w["ops"] for w in got["windows"]] == [20, 20]


@pytest.mark.parametrize(("ends", "until"), [(5.5, 16 * MS), (1.5, 12 * MS + MS // 2), (9.0, 18 * MS)])
def test_the_engines_records_cover_only_the_windows_that_count(point: Point, ends: float, until: int) -> None:
    """Otherwise stacks from after the windows, such as those of the shell's prompt, would be in the graphs of the program."""
    guest = guest_of(FakeSystem(ends_at=ends))
    measured.begin(guest, point)
    *_, recorded = measured.detailed(guest, point)
    assert recorded == measured.Recorded(*[b"until %d" % until] * 3)


def test_a_workload_that_ends_in_its_first_window_is_measured_to_its_end(point: Point) -> None:
    got = course(FakeSystem(ends_at=1.5), point)
    assert [w["ticks"] for w in got["windows"]] == [MS // 2]
    assert got["stderr_per_s"] is None


def test_a_workload_that_ends_in_the_warm_up_is_an_error(point: Point) -> None:
    with pytest.raises(WorkloadFailed, match="expected a shorter --warmup"):
        course(FakeSystem(ends_at=0.5), point)


def test_a_workload_that_ends_before_it_begins_is_an_error_with_its_last_words(point: Point) -> None:
    script = [{"shows": "sh: no such program\r\n"}, {"state": "marker", "detail": initramfs.PROMPT}]
    with pytest.raises(WorkloadFailed, match="(?s)fake.*ended too early.*no such program"):
        course(FakeSystem(script=script), point)


def test_the_first_line_of_a_failed_workload_has_its_own_message(point: Point) -> None:
    said = "memcached: its clients get wrong answers: answers=144 wrong=16"
    script = [{"shows": f"odd: before\r\n{initramfs.PROMPT}launcher --name memcached\r\n{said}\r\nmoscope: memcached verify=wrong\r\n"
                        f"[    1.2] evm: late\r\n{initramfs.PROMPT}"}, {"state": "marker", "detail": initramfs.PROMPT}]
    with pytest.raises(WorkloadFailed) as error:
        course(FakeSystem(script=script), point)
    assert str(error.value).splitlines()[0].endswith(f": ended too early ({said})")
    script = [{"shows": f"odd: before\r\n{initramfs.PROMPT}launcher\r\n{initramfs.PROMPT}"},
              {"state": "marker", "detail": initramfs.PROMPT}]
    with pytest.raises(WorkloadFailed) as error:
        course(FakeSystem(script=script), point)
    assert str(error.value).splitlines()[0].endswith(": ended too early")


def test_detailed_time_begins_so_long_after_the_workloads_start_as_was_asked_for(point: Point) -> None:
    system = FakeSystem(script=[{}, {"state": "marker", "detail": measured.STARTS}, {"state": "marker", "detail": "workbegin"}, {}])
    got = course(system, replace(point, begin=250 * MS))
    assert system.begun == 10 * MS + 2 * MS + 250 * MS + 7, "the workload's own mark was passed by"
    assert system.typed[0].endswith(f"; {point.command}\n") and measured.STARTS not in system.typed[0], "which the shell echoes"
    assert got["begin"] == "250ms" and len(got["windows"]) == 3


def test_detailed_time_begins_at_the_text_that_was_asked_for(point: Point) -> None:
    system = FakeSystem(script=[{"state": "marker", "detail": "workbegin"}, {}, {"state": "marker", "detail": "all set"}])
    got = course(system, replace(point, begin="all set"))
    assert got["begin"] == "all set" and not system.script
    assert course(FakeSystem(), point)["begin"] == "workbegin"


def test_a_workload_that_ends_before_the_time_at_which_it_is_to_begin_is_an_error(point: Point) -> None:
    script = [{"state": "marker", "detail": measured.STARTS}, {"shows": "done early\r\n"}, {"state": "marker", "detail": initramfs.PROMPT}]
    with pytest.raises(WorkloadFailed, match="(?s)fake: ended before --begin 1.5ms: expected a program that runs that long, or a shorter "
                       "time.*done early"):
        course(FakeSystem(script=script), replace(point, begin=3 * MS // 2))


@pytest.mark.parametrize("begin", [250 * MS, options.BUSY])
def test_a_mark_of_the_end_before_detailed_time_is_ignored(point: Point, begin: int | str) -> None:
    class Running(FakeSystem):
        """All cores run."""
        def stats(self) -> dict[str, Any]:
            return {**super().stats(), "per_core": [self.tick] * self.cores}

    script = [{"state": "marker", "detail": measured.STARTS}, {"state": "marker", "detail": "workend"}]
    got = course(Running(script=script), replace(point, begin=begin))
    assert len(got["windows"]) == 3


def test_cores_are_not_looked_at_before_the_shell_has_taken_the_command(point: Point) -> None:
    script = [{}, {}, {"state": "marker", "detail": measured.STARTS}]

    class Running(FakeSystem):
        def stats(self) -> dict[str, Any]:
            assert not script
            return {**super().stats(), "per_core": [self.tick] * self.cores}

    assert course(Running(script=script), replace(point, begin=options.BUSY))["begin"] == options.BUSY


def own(point: Point) -> Point:
    return replace(point, family="", workload="mine")


def test_a_program_that_fails_before_its_begin_time_is_reported_with_its_status(point: Point) -> None:
    script = [{"state": "marker", "detail": measured.STARTS}, {"shows": f"{own_program.ENDED}139\r\n"},
              {"state": "marker", "detail": initramfs.PROMPT}]
    with pytest.raises(WorkloadFailed, match="mine: ended with status 139 before --begin 1.5ms: expected a program that runs that long"):
        course(FakeSystem(script=script), replace(own(point), begin=3 * MS // 2))


def test_a_program_of_ones_own_is_not_asked_for_results(point: Point) -> None:
    system = FakeSystem()
    got = course(system, own(point))
    assert not got["verified"] and system.typed == [point.command + "\n"]


@pytest.mark.parametrize("status", [0, 1, 139])
def test_a_program_of_ones_own_that_ends_in_its_windows_must_have_ended_well(point: Point, status: int) -> None:
    system = FakeSystem(ends_at=5.5)
    system.out = f"{own_program.ENDED}$?\r\n{own_program.ENDED}{status}\r\n".encode()
    if status:
        with pytest.raises(WorkloadFailed, match=f"mine: ended with status {status}\n"):
            course(system, own(point))
    else:
        assert len(course(system, own(point))["windows"]) == 2


class Ended(FakeSystem):
    """The windows end before the shell has printed the status of a program that has ended."""

    def __init__(self, status: int, shown: str = "") -> None:
        super().__init__()
        self.status, self.out = status, shown.encode()

    def step_until(self, until: int, host_ms: int) -> dict[str, Any]:
        if self.begun and not self.detailed:
            self.script = [{"shows": f"{own_program.ENDED}{self.status}\r\n", "state": "marker", "detail": initramfs.PROMPT}]
        return super().step_until(until, host_ms)


def finished(system: FakeSystem, point: Point, running: bool) -> list[str]:
    guest = guest_of(system)
    measured.begin(guest, point)
    measured.detailed(guest, point)
    return measured.finish(guest, point, lambda program: running)


@pytest.mark.parametrize(("shown", "running"), [
    ("", False), ("[    0.846644] mine[129]: segfault at 0 ip 000055af", True), ("[    1.0] traps: mine[129] general", True)])
def test_a_program_that_has_crashed_when_its_windows_end_has_failed(point: Point, shown: str, running: bool) -> None:
    with pytest.raises(WorkloadFailed, match="mine: ended with status 139\n"):
        finished(Ended(139, shown), own(point), running)


def test_a_program_that_has_ended_well_in_its_windows_has_a_note_that_says_so(point: Point) -> None:
    assert finished(Ended(0), own(point), running=False) == [
        "mine ended during the windows, which therefore include its exit and the shell after it"]
    assert finished(Ended(0), own(point), running=True) == []


@pytest.mark.parametrize("answer", [
    {"state": "marker", "detail": "---[ end Kernel panic", "shows": "Kernel panic - not syncing: x\n---[ end Kernel panic"},
    {"state": "reset", "shows": "[    1.2] Kernel panic - not syncing: x\r\n[    1.3] Rebooting in 1 seconds..\r\n"},
    {"state": "triple_fault", "detail": "core 1"},
    {"state": "hang"},
    {"state": "poweroff"},
])
def test_a_dead_guest_is_reported_with_console_and_registers(point: Point, answer: dict[str, Any]) -> None:
    script = [{"shows": "last words\r\n"}, answer]
    with pytest.raises(GuestDied, match="(?s)last words.*rip ffffffff81000000") as died:
        course(FakeSystem(script=script), point)
    assert ("kernel panic: x\n" in str(died.value)) is ("Kernel panic" in answer.get("shows", ""))


def test_a_program_that_ends_its_run_on_gem5_ends_the_windows_and_not_the_machine(point: Point) -> None:
    class Ending(FakeSystem):
        def step_until(self, until: int, host_ms: int) -> dict[str, Any]:
            answer = super().step_until(until, host_ms)
            return {"state": "exit", "detail": "m5 exit", "status": 0} if answer["detail"] == "workend" else answer

    before_windows = [{"state": "exit", "detail": "m5 exit", "status": 0}, {"state": "marker", "detail": "workbegin"}]
    assert len(course(Ending(ends_at=5.5, script=before_windows), point)["windows"]) == 2


def test_a_program_that_ends_its_run_on_gem5_with_a_failure_has_failed(point: Point) -> None:
    with pytest.raises(WorkloadFailed, match=r"the guest ended the run \(m5 fail\) with status 7"):
        course(FakeSystem(script=[{"state": "exit", "detail": "m5 fail", "status": 7}]), point)


def test_what_the_model_lacks_is_a_simulator_bug(point: Point) -> None:
    with pytest.raises(SimulatorBug, match="0f 0b"):
        course(FakeSystem(script=[{"state": "unmodelled", "detail": "0f 0b"}]), point)


def test_a_guest_that_never_begins_runs_into_the_watchdog(point: Point) -> None:
    system = FakeSystem(script=[{"shows": "."} for _ in range(200)])
    step = system.step

    def slow(host_ms: int) -> dict[str, Any]:
        system.tick += 1000 * MS
        return step(host_ms)

    system.step = slow  # type: ignore[method-assign]
    with pytest.raises(GuestDied, match="not reached within 120 s of simulated time"):
        course(system, point)


def test_results_under_another_name_than_the_familys_are_an_error_that_names_both(point: Point) -> None:
    with pytest.raises(WorkloadFailed, match="fake: printed results as fake: expected `moscope: tick ...`\n"):
        course(FakeSystem(), replace(point, family="tick"))
    assert Results.missing("moscope: x threads=4\n", "y") == "printed no results"


def test_wrong_results_are_an_error(point: Point) -> None:
    with pytest.raises(WorkloadFailed, match="its results are wrong"):
        course(FakeSystem(verify="wrong"), point)


def test_reported_times_do_not_go_back_when_detailed_time_begins(point: Point) -> None:
    class Behind(FakeSystem):
        """As the engine, it gives the time of its last event until the first step in detailed mode."""
        def counts(self) -> dict[str, int]:
            found = super().counts()
            return {**found, "ticks": found["ticks"] - MS // 2} if self.detailed and self.tick == self.begun else found

    reported: list[Progress] = []
    course(Behind(), point, reported)
    times = [p.simulated_s for p in reported]
    assert times == sorted(times) and times[0] < times[-1]


def test_progress_goes_from_nothing_to_all_of_the_detailed_time(point: Point) -> None:
    reported: list[Progress] = []
    course(FakeSystem(), point, reported)
    phases = list(dict.fromkeys(p.phase for p in reported))
    assert phases == ["start fake", "warm-up", "window 1 of 3", "window 2 of 3", "window 3 of 3", "check of results"]
    parts = [p.part for p in reported]
    assert parts == sorted(parts) and parts[0] == 0 and parts[-1] == 1


def test_the_note_of_windows_without_an_operation_names_what_clients_waited_for_and_the_frames_that_were_lost() -> None:
    card = {"in_packets": 9, "link_lost": 7, "dropped_no_buffer": 0}
    note = no_operations.note("requests", {"answers": 480, "timeouts": 3}, card)
    assert note == ("the windows contain no operation (requests): throughput is 0. The clients counted since their start: answers 480, "
                    "timeouts 3. The network card counted lost frames since the boot: link_lost 7")
    assert no_operations.note("builds", {}, {}) == "the windows contain no operation (builds): throughput is 0"
