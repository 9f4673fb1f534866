# SPDX-License-Identifier: Apache-2.0
"""What an experiment is and what it gives: every module of this folder that repeats one has the same `run`.

    def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome

`folder` exists and takes the pictures; `size` scales the experiment (sweeps, measurements, positions; None: as the
paper did, or as the module scales it); `say` shows how far it is. A new experiment is one module and one row in
the table below; modules are imported when they are run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from hedgerow.errors import InputError
from hedgerow.reproduce.tables import PaperTable

Print = Callable[[str], object]
"""Shows a line to the user."""


@dataclass(frozen=True)
class Outcome:
    """Tables beside the paper's, words and further tables in Markdown, and the pictures that were drawn."""

    tables: tuple[PaperTable, ...] = ()
    text: str = ""
    pictures: tuple[Path, ...] = ()

    def to_markdown(self) -> str:
        """Return the whole outcome as a Markdown document; pictures are linked by name."""
        parts = [table.to_markdown() for table in self.tables]
        parts += [self.text] if self.text else []
        parts += [f"![{path.stem}]({path.name})" for path in self.pictures]
        return "\n\n".join(parts)


@dataclass(frozen=True)
class Experiment:
    """One row of the table."""

    module: str
    about: str
    options: tuple[tuple[str, str | bool], ...] = ()
    """Further arguments of its `run`, by name."""
    needs_data: bool = False
    """Whether it reads recordings that are not shipped; its `run` takes their folder as `data`."""
    choices: tuple[str, ...] = ()
    """Arguments of its `run` that the user may set, by name: texts."""

    def run(
        self,
        folder: Path,
        size: int | None,
        seed: int,
        say: Print,
        data: Path | None = None,
        chosen: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Repeat the experiment.

        Raises:
            InputError: something is chosen that this experiment has no choice of.
        """
        for name in chosen or {}:
            if name not in self.choices:
                able = ", ".join(each for each, row in EXPERIMENTS.items() if name in row.choices)
                raise InputError(f"--{name}", f"this experiment has no such choice; these have: {able}")
        module = import_module(f"hedgerow.reproduce.{self.module}")
        given = {"data": data} if self.needs_data else {}
        return module.run(folder, size, seed, say, **dict(self.options), **given, **(chosen or {}))


EXPERIMENTS: Mapping[str, Experiment] = {
    "static-targets": Experiment(
        "static_targets", "Browning 2012 Table 3, Deschaud 2012 Table I: worlds of six targets 8 m away"
    ),
    "mobile-offroad": Experiment(
        "mobile",
        "Browning 2012 Tables 5, 7, 9: worlds of a trail, learned on one drive, compared on another",
        (("site", "offroad"),),
    ),
    "mobile-urban": Experiment("mobile", "Browning 2012 Tables 4, 6, 8: the same in a street", (("site", "urban"),)),
    "class-shares": Experiment(
        "class_shares", "Browning 2012 Table 10, Fig. 19: which beams are called surface and volume, beside the truth"
    ),
    "vegetation-response": Experiment(
        "vegetation_response", "Mattes 2021 Tables 1 and 2: calibration of the vegetation response, and what it costs"
    ),
    "sensor-transfer": Experiment(
        "sensor_transfer", "worlds learned with an HDL-64E, compared with what an HDL-32E and a VLP-16 measure"
    ),
    "extrapolated-views": Experiment(
        "extrapolated_views",
        "worlds learned on the lane, judged 0 to 3 m beside it, on trail and street; --models, --sensor",
        choices=("models", "sensor"),
    ),
    "kitti360-nvs": Experiment(
        "novel_views.kitti360",
        "LiDAR4D 2024: novel views of KITTI-360 by its protocol, beside its figures; needs DATA; --models, --mask",
        needs_data=True,
        choices=("models", "mask"),
    ),
    "novel-views": Experiment(
        "novel_views.true_beams",
        "the same scores on the true beams of other drives, and images per second; needs --data; --models",
        needs_data=True,
        choices=("models",),
    ),
    "budget": Experiment("budget", "likelihood and distance by the number of elements of refined worlds"),
    "coarser": Experiment(
        "coarser", "Tallavajhula 2018 §5.2.2: a knob for fidelity; error against speed with ever fewer elements"
    ),
    "seams": Experiment(
        "seams", "returns near the borders of tiles on the disk, and of cells in learning, against elsewhere"
    ),
    "large-scale": Experiment(
        "large_scale", "Browning 2012 §6.4, Fig. 21: 400 m off road, worlds of up to 80 million points (--size 615)"
    ),
    "grassland": Experiment(
        "grassland.trial", "Browning 2012 §1: wild grassland by the km², composed of learned patches, driven through"
    ),
    "voxel-size": Experiment("voxel_size", "Browning 2012 Fig. 22 and §6.5: distance by the size of the elements"),
    "mesh-size": Experiment("mesh_size", "Browning 2012 §6.2.6: meshes with shared corners, and simplified"),
    "grass-ranges": Experiment("grass_ranges", "Goodin 2018 Fig. 5: ranges in cylinder grass, beside two closed forms"),
    "mixed-pixels": Experiment("mixed_pixels", "Goodin 2018 Fig. 7: an LMS-291, nine rods and a plane behind them"),
    "shrub-histogram": Experiment("shrub_histogram", "Goodin 2018 Fig. 8: ranges of a shrub, from 91 places"),
    "root-scene": Experiment(
        "root_scene", "Goodin 2018 Fig. 11: a root of 22 million triangles among 24,564 plants, seen by two lidars"
    ),
    "cost-maps": Experiment(
        "cost_maps", "Goodin 2018 Fig. 10: one robot with four lidars finds its way through a courtyard"
    ),
    "cost-maps-paper": Experiment(
        "cost_maps", "the same to the letter: no closed cells, no safety distance, every sweep", (("paper", True),)
    ),
    "cost-maps-gps": Experiment(
        "cost_maps",
        "the same with the errors of GPS and compass of Browning 2012",
        (("pose_errors", "browning-2012"),),
    ),
    "pose-errors": Experiment(
        "pose_errors", "worlds learned from logs with the pose errors of Browning 2012, compared on an exact log"
    ),
    "planar-observation": Experiment(
        "planar.observation", "Tallavajhula 2018 Table 3.2: sensor models of a planar scanner at poses not learned from"
    ),
    "planar-detection": Experiment(
        "planar.detection", "Tallavajhula 2018 Figs. 3.16, 3.17: line targets, the risk of three simulators"
    ),
    "planar-registration": Experiment(
        "planar.registration", "Tallavajhula 2018 Fig. 3.20: registration in a corridor, by refining iterations"
    ),
    "planar-particle-filter": Experiment(
        "planar.particle_filter", "Tallavajhula 2018 Table 3.3: a particle filter among people, with two sensor models"
    ),
    "magnetic-probe": Experiment(
        "planar.magnetic_probe", "Tallavajhula 2018 Fig. 3.24: the same regression for a magnetic probe"
    ),
    "planar-grass": Experiment("planar.grass", "Tallavajhula 2018 Fig. 3.8: where regression over poses must fail"),
    "noisy-state": Experiment("planar.noisy_state", "sensor models learned from poses that are off by 1 and 3 cm"),
    "planar-real": Experiment(
        "planar.real", "sensor models on real logs of two buildings; needs --data", needs_data=True
    ),
    "closed-loop-risk": Experiment(
        "closed_loop", "a robot in closed loop through the courtyard and through worlds learned from it"
    ),
    "risk-3d": Experiment(
        "risk_3d", "application risk of all models on a real drive, three programs; needs --data", needs_data=True
    ),
    "segmentation": Experiment(
        "segmentation",
        "ground and plants found in a site where everything is known; a forest plot with --data",
        needs_data=True,
    ),
    "primitives": Experiment(
        "composition.primitives",
        "Tallavajhula 2018 Tables 4.2, 4.3: sections of plants learned elsewhere; meshes and a real drive with --data",
        needs_data=True,
    ),
    "primitives-choice": Experiment(
        "composition.choice",
        "which model learns the primitives, and how they fill boxes: measured on the first section alone",
        needs_data=True,
    ),
    "annotation-error": Experiment(
        "composition.annotation_error", "what missed plants, wrong classes and boxes of an annotation cost"
    ),
    "scan-matching-risk": Experiment(
        "composition.scan_matching_risk",
        "Tallavajhula 2018 Table 4.4: scan matching in learned and composed sites; a real drive and meshes with --data",
        needs_data=True,
    ),
    "dense-forest": Experiment(
        "composition.dense_forest", "Tallavajhula 2018 Fig. 4.25: a forest that nobody scanned, of learned trees"
    ),
    "mapping-speed": Experiment(
        "composition.mapping_speed", "Tallavajhula 2018 §4.4.1: a dense map of a site that was driven through fast"
    ),
    "worst-rays": Experiment(
        "composition.worst_rays", "Tallavajhula 2018 Figs. 4.20 to 4.23: where single rays err most, and why"
    ),
}


def find_experiment(name: str) -> Experiment:
    """Return an experiment.

    Raises:
        InputError: there is none of that name.
    """
    if name not in EXPERIMENTS:
        raise InputError(name, f"there is no such experiment; there are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
