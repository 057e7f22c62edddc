# SPDX-License-Identifier: BSD-3-Clause
"""Reads the litmus tests of litmus.txt and judges the outcomes that the engine counted."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("litmus.txt")
OPERATIONS = (
    (re.compile(r"mf"), "fence"),
    (re.compile(r"(?P<reg>r\d)=(?P<var>[a-z])"), "load"),
    (re.compile(r"(?P<reg>r\d)<>(?P<var>[a-z])=(?P<value>\d+)"), "swap"),
    (re.compile(r"(?P<var>[a-z])\+=(?P<value>\d+)"), "add"),
    (re.compile(r"(?P<var>[a-z])=(?P<value>\d+)"), "store"),
)
VERDICTS = ("never", "seen", "may", "always")


@dataclass
class Litmus:
    """One test; places number the registers, then the variables, as the engine lists their values."""

    name: str
    verdict: str
    outcome: dict[str, str]
    threads: list[list[str]]
    every: bool
    registers: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)

    def request(self, cores: int, rounds: int, seed: int) -> dict[str, Any]:
        threads = [[self._operation(text) for text in thread] for thread in self.threads]
        if self.every:
            threads = threads * cores
        return {"threads": threads, "vars": len(self.variables), "regs": len(self.registers), "rounds": rounds,
                "seed": seed}

    def fits(self, cores: int) -> bool:
        return self.every or len(self.threads) <= cores

    def count(self, answer: dict[str, Any], cores: int) -> int:
        """How often the outcome came out."""
        wanted = {self._place(name): self._value(text, cores) for name, text in self.outcome.items()}
        return sum(o["count"] for o in answer["outcomes"]
                   if all(o["values"][place] == value for place, value in wanted.items()))

    def complaint(self, answer: dict[str, Any], cores: int) -> str:
        """Empty if the verdict holds. `seen` is left to the caller to sum up over runs."""
        times, runs = self.count(answer, cores), answer["runs"]
        if self.verdict == "never" and times:
            return f"{self.name}: {self.outcome} came out {times} times in {runs} runs"
        if self.verdict == "always" and times != runs:
            return f"{self.name}: {self.outcome} missed {runs - times} times in {runs} runs: {answer['outcomes'][:5]}"
        return ""

    def _place(self, name: str) -> int:
        if name in self.registers:
            return self.registers.index(name)
        return len(self.registers) + self.variables.index(name)

    @staticmethod
    def _value(text: str, cores: int) -> int:
        return int(text[:-1] or 1) * cores if text.endswith("N") else int(text)

    def _operation(self, text: str) -> dict[str, Any]:
        for pattern, op in OPERATIONS:
            if match := pattern.fullmatch(text):
                got = match.groupdict()
                operation: dict[str, Any] = {"op": op}
                if "var" in got:
                    operation["var"] = self.variables.index(got["var"])
                if "reg" in got:
                    operation["reg"] = self.registers.index(got["reg"])
                if "value" in got:
                    operation["value"] = int(got["value"])
                return operation
        raise ValueError(f"{self.name}: no operation: {text}")


def parse_line(line: str) -> Litmus:
    name, *threads, end = (part.strip() for part in line.split("|"))
    verdict, *outcome = end.split()
    if verdict not in VERDICTS:
        raise ValueError(f"{name}: no verdict: {verdict}")
    every = threads[0].startswith("every:")
    threads[0] = threads[0].removeprefix("every:")
    test = Litmus(name, verdict, dict(part.split("=") for part in outcome),
                  [[op.strip() for op in t.split(";")] for t in threads], every)
    for operation in (op for thread in test.threads for op in thread if op != "mf"):
        for word in re.findall(r"r\d|[a-z]", operation):
            known = test.registers if word.startswith("r") and len(word) > 1 else test.variables
            if word not in known:
                known.append(word)
    return test


def load_table(path: Path = TABLE) -> list[Litmus]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [parse_line(line) for line in lines if line.strip() and not line.startswith("#")]
