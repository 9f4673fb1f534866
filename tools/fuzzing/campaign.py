# SPDX-License-Identifier: Apache-2.0
"""A run of the fuzzer: which kind is next, what was done, what was found, and the table at the end."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fuzzing.change import Changes, Seed
from fuzzing.isolate import BATCH_S, Batch, Child, Hit, numbered, one_by_one
from fuzzing.kinds import Kind
from fuzzing.verdict import now_s

BLOCK = 400
"""Inputs that a child is given at most."""
_REPORT_S = 10.0


@dataclass
class Count:
    """What was done with inputs of one kind."""

    inputs: int = 0
    refused: int = 0
    findings: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    """Of all its processes."""
    slowest_s: float = 0.0
    next: int = 0
    """Number of the first input that has not been tried."""

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        self.inputs += batch.n_done
        self.refused += batch.n_refused
        self.findings += len(batch.hits)
        self.seconds += batch.took_s
        self.cpu_s += batch.cpu_s
        self.slowest_s = max(self.slowest_s, batch.slowest_s)


@dataclass
class Found:
    """A finding with the first input that shows it, and how often it came."""

    hit: Hit
    times: int = 0
    kinds: dict[str, int] = field(default_factory=dict[str, int])
    kept: str = ""


class Campaign:
    """Counts and findings of a run, and of those before that it goes on from."""

    def __init__(self, kinds: Sequence[Kind], seeds: Mapping[str, Seed], random_seed: int) -> None:
        """Begin with nothing done."""
        self.kinds, self.seeds, self.random_seed = kinds, seeds, random_seed
        self.counts = {kind.name: Count() for kind in kinds}
        self.found: dict[tuple[str, str], Found] = {}
        self.earlier: dict[str, Any] = {}
        self.guided: dict[str, int] = {}
        """How many of the inputs were chosen by coverage, by kind."""
        self.start_s = now_s()
        self.batch_s = BATCH_S
        self._pending: dict[str, list[tuple[int, int]]] = {kind.name: [] for kind in kinds}
        self._used_s = {kind.name: 0.0 for kind in kinds}

    @property
    def n_inputs(self) -> int:
        """Inputs tried in this run."""
        return sum(count.inputs for count in self.counts.values())

    def run(self, jobs: int, folder: Path, until: Callable[["Campaign"], bool], say: Callable[[str], None]) -> None:
        """Run children side by side until told to stop; kinds share the time by their weights."""
        slots: list[Child | None] = [None] * jobs
        ends = [0] * jobs
        said_s = now_s()
        stopping = False
        while not stopping or any(slots):
            stopping = stopping or until(self)
            for slot, child in enumerate(slots):
                if child is None and not stopping:
                    slots[slot], ends[slot] = self._start(folder / f"slot{slot}")
                elif child is not None and (batch := child.poll()) is not None:
                    self.count(child.kind, batch)
                    if child.first + batch.n_done < ends[slot]:
                        self._pending[child.kind.name].append((child.first + batch.n_done, ends[slot]))
                    slots[slot] = None
            if now_s() - said_s > _REPORT_S:
                said_s = now_s()
                say(self.line())
            time.sleep(0.002)

    def _start(self, folder: Path) -> tuple[Child, int]:
        kind = min(self.kinds, key=lambda each: self._used_s[each.name] / each.weight)
        self._used_s[kind.name] += 1e-3  # so that two slots do not take the same kind at the start
        seed, pending = self.seeds[kind.name], self._pending[kind.name]
        if not pending:
            first = self.counts[kind.name].next
            self.counts[kind.name].next = first + BLOCK
            pending.append((first, first + BLOCK))
        first, end = pending.pop(0)
        series = numbered(kind.name, seed, self.random_seed)
        loop = one_by_one(lambda k: series(k) if k < end else None, first)
        return Child(kind, seed, loop, first, folder, self.batch_s), end

    def count(self, kind: Kind, batch: Batch) -> None:
        """Count what a child did, and note what it found."""
        self.counts[kind.name].add(batch)
        self._used_s[kind.name] += batch.took_s
        for hit in batch.hits:
            entry = self.found.setdefault((hit.finding.what, hit.finding.where), Found(hit))
            entry.times += 1
            entry.kinds[hit.kind] = entry.kinds.get(hit.kind, 0) + 1

    def changes_of(self, hit: Hit) -> Changes:
        """Return the input of a finding."""
        if hit.changes is not None:
            return hit.changes
        return numbered(hit.kind, self.seeds[hit.kind], self.random_seed)(hit.number) or {}

    def line(self) -> str:
        """Say how far it is."""
        took_s = max(now_s() - self.start_s, 1e-3)
        return (
            f"{took_s:6.0f} s  {self.n_inputs:9,} inputs  {self.n_inputs / took_s:6,.0f}/s  {len(self.found)} findings"
        )

    def table(self) -> str:
        """Return the table of all kinds."""
        rows = [f"{'kind':16} {'inputs':>9} {'read':>8} {'refused':>9} {'findings':>8} {'inputs/s':>8} {'slowest':>8}"]
        for name, count in [*self.counts.items(), ("total", self._total())]:
            rate = count.inputs / count.cpu_s if count.cpu_s else 0  # a busy machine would tell less by the clock
            rows.append(
                f"{name:16} {count.inputs:9,} {count.inputs - count.refused:8,} {count.refused:9,} "
                f"{count.findings:8,} {rate:8,.0f} {count.slowest_s:6.1f} s"
            )
        return "\n".join(rows)

    def _total(self) -> Count:
        total = Count()
        for count in self.counts.values():
            total.inputs += count.inputs
            total.refused += count.refused
            total.findings += count.findings
            total.seconds += count.seconds
            total.cpu_s += count.cpu_s
            total.slowest_s = max(total.slowest_s, count.slowest_s)
        return total

    def findings(self) -> str:
        """Return one paragraph for each finding."""
        rows: list[str] = []
        for entry in self.found.values():
            finding = entry.hit.finding
            kinds = ", ".join(f"{name} {times}" for name, times in entry.kinds.items())
            said = " ".join(finding.said.split())
            rows.append(f"{finding.what}: {finding.where}\n    {said}\n    {entry.times} times: {kinds}")
            rows[-1] += f"\n    {entry.kept}" if entry.kept else ""
        return "\n".join(rows)

    def resume(self, path: Path) -> None:
        """Go on from an earlier run with the same seed, whose totals will be added to these."""
        if not path.exists():
            return
        self.earlier = json.loads(path.read_text(encoding="utf-8"))
        for name, told in self.earlier["kinds"].items():
            if name in self.counts and self.earlier["seed"] == self.random_seed:
                self.counts[name].next = int(told["next"])

    def totals(self) -> dict[str, Any]:
        """Return all counts and findings as plain values, those of earlier runs added."""
        before = self.earlier.get("kinds", {})
        kinds: dict[str, Any] = {name: dict(told) for name, told in before.items()}
        for name, count in self.counts.items():
            now, old = asdict(count), before.get(name, {})
            added = {key: now[key] + old.get(key, 0) for key in ("inputs", "refused", "findings", "seconds", "cpu_s")}
            kinds[name] = added | {"slowest_s": max(count.slowest_s, old.get("slowest_s", 0.0)), "next": count.next}
        found = [*self.earlier.get("findings", [])]
        for entry in self.found.values():
            told = {"times": entry.times, "kinds": entry.kinds, "number": entry.hit.number, "kept": entry.kept}
            found.append(entry.hit.finding.content() | told)
        seconds = now_s() - self.start_s + self.earlier.get("seconds", 0.0)
        guided = sum(self.guided.values()) + self.earlier.get("guided", 0)
        total = sum(each["inputs"] for each in kinds.values())
        return {
            "seed": self.random_seed,
            "inputs": total,
            "seconds": seconds,
            "guided": guided,
            "kinds": kinds,
            "findings": found,
        }
