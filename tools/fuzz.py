# SPDX-License-Identifier: Apache-2.0
"""Fuzz every reader: damaged files of all kinds, each read in isolation; see docs/robustness.md.

    python tools/fuzz.py --minutes 10 [--kinds laz,parquet] [--seed 3] [--jobs 2] [--count N] [--json totals.json]
    python tools/fuzz.py --replay tests/data/fuzz

Same seed, same inputs. What is found is made smaller and kept below --keep. The exit code is 1 if anything was found.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzzing.campaign import Campaign

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "tests" / "data" / "fuzz"
_LEAST_GUIDED_S = 10.0
_SHRINK_ALL_S = 120.0
# Memory is limited by address space, so nothing may reserve more of that than it uses.
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "HEDGEROW_FUZZ": "1",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long")
    parser.add_argument("--count", type=int, help="how many inputs in all, however long that takes")
    parser.add_argument("--kinds", help="names of kinds, with commas; default all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--guided", type=float, default=0.25, help="share of the time for Atheris, 0 to 1")
    parser.add_argument("--keep", type=Path, default=KEPT, help="where to keep what was found")
    parser.add_argument("--json", type=Path, help="where to write totals; a run with the same seed goes on from them")
    parser.add_argument("--replay", type=Path, help="read a kept input, or all below a folder, and nothing else")
    given = parser.parse_args(arguments)
    from fuzzing.isolate import scratch_folder

    folder = scratch_folder()
    try:
        return _replay(given, folder) if given.replay else _fuzz(given, folder)
    except KeyboardInterrupt:
        print("fuzz: interrupted")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _replay(given: argparse.Namespace, folder: Path) -> int:
    from fuzzing.isolate import prepare, run_all
    from fuzzing.kinds import BY_NAME
    from fuzzing.reproducers import kept, kept_below

    pairs = kept_below(given.replay.resolve(), BY_NAME)
    seeds = prepare(list({kind.name: kind for kind, _ in pairs}.values()), folder)
    told: dict[str, list[dict[str, str]]] = {}
    for name, seed in seeds.items():
        paths = [path for kind, path in pairs if kind.name == name]
        inputs = [kept(path, seed) for path in paths]
        for path, found in zip(paths, run_all(BY_NAME[name], seed, inputs, folder / "slot"), strict=True):
            told[f"{name}/{path.name}"] = [each.content() for each in found]
            for each in found:
                print(f"{name}/{path.name}: {each.what}: {each.where}\n    {' '.join(each.said.split())}")
    if given.json:
        given.json.write_text(json.dumps(told, indent=1), encoding="utf-8")
    n_found = sum(map(bool, told.values()))
    print(f"{len(told)} inputs read, {n_found} with findings")
    return int(n_found > 0)


def _fuzz(given: argparse.Namespace, folder: Path) -> int:
    from fuzzing.campaign import Campaign
    from fuzzing.isolate import prepare
    from fuzzing.kinds import BY_NAME, KINDS
    from fuzzing.verdict import now_s

    kinds = [BY_NAME[name] for name in given.kinds.split(",")] if given.kinds else list(KINDS)
    campaign = Campaign(kinds, prepare(kinds, folder), given.seed)
    if given.json:
        campaign.resume(given.json)
    campaign.batch_s = min(max(60 * given.minutes * given.jobs / len(kinds) / 2, 1), 20)
    print(f"{len(kinds)} kinds, seed {given.seed}, {given.jobs} processes", flush=True)
    end_s = now_s() + 60 * given.minutes * (1 - given.guided)
    count, alone = given.count, 1 - given.guided

    def run(enough: int | None) -> None:
        campaign.run(
            given.jobs,
            folder,
            lambda so_far: now_s() > end_s if enough is None else so_far.n_inputs >= enough,
            lambda line: print(line, flush=True),
        )

    try:
        run(None if count is None else round(count * alone))
        if given.guided > 0:
            seconds = 60 * given.minutes * given.guided
            if count is not None:
                seconds = (now_s() - campaign.start_s) * given.guided / alone
            _guide(given, campaign, max(seconds, _LEAST_GUIDED_S), folder)
        if count is not None:
            run(count)
    except KeyboardInterrupt:
        print("interrupted; what was done counts", flush=True)
    _keep(given, campaign, folder)
    print(campaign.table())
    print(campaign.findings() or "no findings")
    return int(bool(campaign.found))


def _guide(given: argparse.Namespace, campaign: "Campaign", seconds: float, folder: Path) -> None:
    """Let Atheris choose inputs for the rest of the time, the kinds dealt out to as many processes."""
    from fuzzing import guided

    if not guided.is_there():
        print("Atheris is not installed (it has wheels for x86-64 Linux): inputs chosen by coverage are left out")
        return
    folders = [folder / f"guided{job}" for job in range(given.jobs)]
    shares = [[kind.name for kind in campaign.kinds[job :: given.jobs]] for job in range(given.jobs)]
    pairs = [pair for pair in zip(shares, folders, strict=True) if pair[0]]
    print(f"Atheris for {seconds:.0f} s", flush=True)
    random_seed = given.seed + 1_000_003 * int(campaign.earlier.get("inputs", 0))  # a later run chooses anew
    for process in [guided.start(share, seconds, random_seed, place) for share, place in pairs]:
        process.wait()
    by_name = {kind.name: kind for kind in campaign.kinds}
    for _, place in pairs:
        if (place / "faults").exists():
            print(f"faults of the harness itself, which count as nothing: {(place / 'faults').read_text()}")
        for name, batch in guided.results(place):
            campaign.count(by_name[name], batch)
            campaign.guided[name] = campaign.guided.get(name, 0) + batch.n_done
    print(campaign.line(), flush=True)


def _keep(given: argparse.Namespace, campaign: "Campaign", folder: Path) -> None:
    """Make what was found smaller, and keep it; first as it is, should that be interrupted."""
    from fuzzing.kinds import BY_NAME
    from fuzzing.reproducers import SHRINK_S, keep, shrink

    for is_shrunk in (False, True):
        for entry in campaign.found.values():
            kind, finding = BY_NAME[entry.hit.kind], entry.hit.finding
            seed, changes = campaign.seeds[kind.name], campaign.changes_of(entry.hit)
            note = ""
            if is_shrunk:
                limit_s = min(SHRINK_S, _SHRINK_ALL_S / len(campaign.found))
                smaller = shrink(kind, seed, changes, finding, folder / "shrink", limit_s)
                note = " (it did not show again by itself)" if smaller is None else ""
                changes = changes if smaller is None else smaller
            entry.kept = str(keep(kind, seed, changes, finding, given.keep)) + note
        if given.json:
            given.json.write_text(json.dumps(campaign.totals(), indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if os.environ.get("HEDGEROW_FUZZ") is None:
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | _ENVIRONMENT)
    sys.exit(main())
