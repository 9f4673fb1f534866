# SPDX-License-Identifier: Apache-2.0
"""Cost of a pulse as the courtyard grows to more than 600 million triangles; draws out/growth.png.

Triangles grow in two ways: more plants, as in Goodin 2018 §3.6, which also puts more edges in the way of a beam; and
the same plants in finer meshes, where nothing but the number of triangles changes.
"""

from pathlib import Path

from beam import SUB_RAYS, THREADS, memory_bytes, sensor
from measure import Result, best_seconds

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.scenes.site import load_site

PICTURE = Path(__file__).parent.parent / "out" / "growth.png"
GRASS, TREE = "plants.grass.parameters", "plants.tree.parameters"
# Blades per square metre and trees: about 1, 10, 100 and 600 million triangles.
MORE = [{"blades_per_m2": blades, "trees": trees} for blades, trees in ((0.09, 1), (1.1, 3), (11.7, 26), (68.7, 216))]
# Pieces of a blade, in two halves or not, and how fine the leaves of the trees are: about 6, 40, 220 and 650 million.
FINER = [
    {f"{GRASS}.segments": segments, f"{GRASS}.folded": folded, f"{TREE}.detail": detail}
    for segments, folded, detail in ((1, False, 0.1), (4, True, 0.4), (22, True, 3.0), (64, True, 10.0))
]
MOST_BYTES = 8e9


def measured(changes):
    """Return triangles, microseconds per pulse and bytes of a courtyard."""
    before = memory_bytes()
    site = load_site("courtyard", set=changes)
    took_bytes = memory_bytes() - before
    beams = sensor().drive(site.trajectories["drive"], start_s=10.0, n_sweeps=1)
    world = site.world(BeamSettings(sub_rays=SUB_RAYS))
    (fire_s,) = best_seconds(lambda: world.fire(beams, sensor=sensor(), threads=THREADS), rounds=3)
    return site.n_triangles, 1e6 * fire_s / len(beams), took_bytes


def results():
    curves = {}
    for name, sizes in (("more plants", MORE), ("the same plants, finer", FINER)):
        curves[name] = []
        for changes in sizes:
            triangles, cost_us, took_bytes = measured(changes)
            curves[name].append((triangles, cost_us))
            large = triangles > 604e6  # Goodin 2018 §3.6
            detail = f"{cost_us:.2f} us per pulse, {took_bytes / 1e9:.2f} GB"
            met = took_bytes < MOST_BYTES if large else None
            yield Result(f"{name}: {triangles / 1e6:.1f} M triangles", detail, "< 8 GB" if large else "", met)
        (few, low), (many, high) = curves[name][0], curves[name][-1]
        yield Result("  cost of the largest / the smallest", f"{high / low:.2f}, triangles {many / few:.0f}", "", None)
    _draw(curves)


def _draw(curves):
    PICTURE.parent.mkdir(exist_ok=True)
    figure = new_figure(7, 4.2)
    axes = figure.subplots()
    for name, points in curves.items():
        axes.semilogx(*zip(*points, strict=True), "o-", label=name)
    axes.set(
        xlabel="triangles, all copies counted",
        ylabel=f"time per pulse of {SUB_RAYS} sub-rays [us]",
        title=f"HDL-64E in the courtyard, {THREADS} threads",
        ylim=(0, None),
    )
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    save_figure(figure, PICTURE)
