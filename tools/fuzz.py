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

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "tests" / "data" / "fuzz"
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
    for kind, path in pairs:
        [found] = run_all(kind, seeds[kind.name], [kept(path, seeds[kind.name])], folder / "slot")
        told[f"{kind.name}/{path.name}"] = [each.content() for each in found]
        for each in found:
            print(f"{kind.name}/{path.name}: {each.what}: {each.where}\n    {' '.join(each.said.split())}")
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
    print(f"{len(kinds)} kinds, seed {given.seed}, {given.jobs} processes", flush=True)
    end_s = now_s() + 60 * given.minutes * (1 - given.guided)
    most = None if given.count is None else round(given.count * (1 - given.guided))
    campaign.run(
        given.jobs,
        folder,
        lambda run: run.n_inputs >= most if most is not None else now_s() > end_s,
        lambda line: print(line, flush=True),
    )
    if given.guided > 0:
        _guide(given, campaign, folder)
    _keep(given, campaign, folder)
    print(campaign.table())
    print(campaign.findings() or "no findings")
    if given.json:
        given.json.write_text(json.dumps(campaign.totals(), indent=1), encoding="utf-8")
    return int(bool(campaign.found))


def _guide(given, campaign, folder: Path) -> None:
    """To come."""


def _keep(given: argparse.Namespace, campaign, folder: Path) -> None:
    """Make what was found smaller, and keep it."""
    from fuzzing.kinds import BY_NAME
    from fuzzing.reproducers import keep, shrink

    for entry in campaign.found.values():
        kind, finding = BY_NAME[entry.hit.kind], entry.hit.finding
        seed, changes = campaign.seeds[kind.name], campaign.changes_of(entry.hit)
        smaller = shrink(kind, seed, changes, finding, folder / "shrink")
        path = keep(kind, seed, changes if smaller is None else smaller, finding, given.keep)
        entry.kept = f"kept as {path}" + (" (it did not show again by itself)" if smaller is None else "")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if os.environ.get("HEDGEROW_FUZZ") is None:
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | _ENVIRONMENT)
    sys.exit(main())
