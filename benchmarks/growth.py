# SPDX-License-Identifier: Apache-2.0
"""Cost of a pulse as the courtyard grows from one million to six hundred million triangles; draws out/growth.png.

More triangles are more plants, as in 003 section 3.6. The largest scene has more than the 604 million of that section.
"""

from pathlib import Path

from beam import SUB_RAYS, THREADS, memory_bytes, sensor
from measure import Result, best_seconds

from hedgerow.io.figure import new_figure, save_figure
from hedgerow.physics.receiver import BeamSettings
from hedgerow.physics.site import load_site

PICTURE = Path(__file__).parent.parent / "out" / "growth.png"
# Blades per square metre and trees for each size, in millions of triangles.
SIZES = {1: (0.09, 1), 10: (1.1, 3), 100: (11.7, 26), 600: (68.7, 216)}
MOST_BYTES = 8e9


def results():
    measured = []
    for millions, (blades, trees) in SIZES.items():
        before = memory_bytes()
        site = load_site("courtyard", set={"blades_per_m2": blades, "trees": trees})
        took_bytes = memory_bytes() - before
        beams = sensor().drive(site.trajectories["drive"], start_s=10.0, n_sweeps=1)
        world = site.world(BeamSettings(sub_rays=SUB_RAYS))
        (fire_s,) = best_seconds(lambda w=world, b=beams: w.fire(b, sensor=sensor(), threads=THREADS), rounds=3)
        measured.append((site.n_triangles, 1e6 * fire_s / len(beams), took_bytes))
        enough = took_bytes < MOST_BYTES if millions == 600 else None
        detail = f"{measured[-1][1]:.2f} us per pulse, {took_bytes / 1e9:.2f} GB"
        yield Result(
            f"courtyard of {site.n_triangles / 1e6:.1f} M triangles", detail, "< 8 GB" if enough else "", enough
        )
        del site, world
    times, cost = measured[-1][0] / measured[0][0], measured[-1][1] / measured[0][1]
    yield Result("  cost of the largest / the smallest", f"{cost:.1f} for {times:.0f} times the triangles", "", None)
    _draw(measured)


def _draw(measured):
    PICTURE.parent.mkdir(exist_ok=True)
    figure = new_figure(7, 4.2)
    axes = figure.subplots()
    triangles, cost_us, _ = zip(*measured, strict=True)
    axes.semilogx(triangles, cost_us, "o-")
    axes.set(
        xlabel="triangles, all copies counted",
        ylabel=f"time per pulse of {SUB_RAYS} sub-rays [us]",
        title=f"HDL-64E in the courtyard, {THREADS} threads",
        ylim=(0, None),
    )
    axes.grid(alpha=0.3, which="both")
    save_figure(figure, PICTURE)
