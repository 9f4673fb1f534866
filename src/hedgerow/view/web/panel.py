# SPDX-License-Identifier: Apache-2.0
"""The panel: sliders, switches, legend and the plot of a beam. It writes the choice and says what has changed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure
from hedgerow.errors import InputError
from hedgerow.view.web.beam import SIGMA_M, BeamAt, BeamView, choose_plot_span
from hedgerow.view.web.colours import QUANTITIES, TITLES, UNKNOWN, Legend, scale
from hedgerow.view.web.drawing import GaussiansAs
from hedgerow.view.web.frame import MOVING_POINTS, SPACING_M, Choice, Frame
from hedgerow.view.web.session import Rgb, Session

if TYPE_CHECKING:
    from viser import ViserServer

Changed = Callable[[str], None]
"""Called with what has to be drawn anew: clouds, spacing, detail, size, worlds, path or beam."""

_SWEEPS_PER_S = 10
_DETAIL_HINT = "at most so many points are drawn while the camera moves"
Picture = NDArray[np.uint8]
"""(height, width, 4) red, green, blue, alpha."""
_PAPER, _INK = "#242424", "#d8d8d8"
"""Pictures are dark, as the panel is."""
_DPI = 200
_MAX_ENTRIES = 30


class Panel:
    """The controls of one viewer."""

    def __init__(self, server: "ViserServer", session: Session, choice: Choice, changed: Changed) -> None:
        """Build all controls."""
        self._gui: Any = server.gui
        self._session, self._choice, self._changed = session, choice, changed
        self.playing = False
        self.worlds: list[Any] = []
        self._switches: list[Any] = []
        self._status = self._gui.add_markdown("reading ...")
        if session.layers:
            self._add_sweeps()
        self._add_colours()
        if session.layers:
            self._add_beam()
            self._add_layers()
        self._add_worlds()

    # ---- building ---------------------------------------------------------------------------------------------

    def _add_sweeps(self) -> None:
        n = len(self._session.sweeps)
        with self._gui.add_folder("Sweeps"):
            self.slider = self._gui.add_slider("sweep", 0, max(n - 1, 1), 1, self._choice.position, disabled=n == 1)
            self._play = self._gui.add_button("Play", disabled=n == 1)
            self.follow = self._gui.add_checkbox("follow", False, hint="the camera goes with the sensor")
            self._speed = self._gui.add_slider("sweeps/s", 1, 20, 1, _SWEEPS_PER_S)
            accumulate = self._gui.add_number("accumulate", self._choice.accumulate, min=1, max=n, step=1)
        self._on(self.slider, "clouds", position=lambda: min(self.slider.value, n - 1))
        self._on(accumulate, "clouds", accumulate=lambda: int(accumulate.value))
        self._play.on_click(self._toggle)

    def _add_layers(self) -> None:
        with self._gui.add_folder("Clouds"):
            for i, layer in enumerate(self._session.layers):
                title = f"{layer.name} (fired)" if layer.is_fired else layer.name
                self._switches.append(self._gui.add_checkbox(title, i not in self._choice.hidden))
                self._on(self._switches[-1], "clouds", hidden=self._hidden)
            if self._session.comparable:
                beside = self._gui.add_checkbox("side by side", self._choice.spacing_m > 0)
                spacing = self._gui.add_number("spacing [m]", self._choice.spacing_m or SPACING_M, min=1.0, step=1.0)
                for each in (beside, spacing):
                    self._on(each, "spacing", spacing_m=lambda: float(spacing.value) if beside.value else 0.0)
            self.path = self._gui.add_checkbox("sensor's path", True)
            self._on(self.path, "path")
            self.size = self._gui.add_slider("point size [m]", 0.01, 0.3, 0.01, 0.05)
            self._on(self.size, "size")
            limit = self._gui.add_number("at most [points]", self._choice.point_limit, min=1, step=1)
            self._on(limit, "clouds", point_limit=lambda: int(limit.value))
            self._add_detail()

    def _add_detail(self) -> None:
        numbers = sorted({1_000_000, MOVING_POINTS, 50_000, self._choice.moving_points} - {0}, reverse=True)
        choices = {"all points": 0} | {f"{number:,}": number for number in numbers}
        initial = next(name for name, number in choices.items() if number == self._choice.moving_points)
        moving = self._gui.add_dropdown("while moving", tuple(choices), initial_value=initial, hint=_DETAIL_HINT)
        self._on(moving, "detail", moving_points=lambda: choices[moving.value])

    def _add_worlds(self) -> None:
        if not self._session.worlds:
            return
        with self._gui.add_folder("Worlds"):
            for layer in self._session.worlds:
                self.worlds.append(self._gui.add_checkbox(f"{layer.name}", not self._session.layers))
                self._on(self.worlds[-1], "worlds")
            self.gaussians_as = self._gui.add_dropdown("Gaussians as", get_args(GaussiansAs))
            self._on(self.gaussians_as, "worlds")

    def _add_colours(self) -> None:
        with self._gui.add_folder("Colours"):
            quantity = self._gui.add_dropdown("by", QUANTITIES, initial_value=self._choice.quantity)
            self._on(quantity, "clouds", quantity=lambda: quantity.value)
            if len(self._session.comparable) > 1:
                names = [self._session.layers[i].name for i in self._session.comparable]
                compared_with = self._gui.add_dropdown("compared with", names)
                self._on(compared_with, "clouds", compared_with=lambda: 1 + names.index(compared_with.value))
            self._legend = self._gui.add_image(np.zeros((1, 1, 4), dtype=np.uint8), format="png")
            rescale = self._gui.add_button("Fit colours to what is shown")
        rescale.on_click(self._rescale)

    def _add_beam(self) -> None:
        with self._gui.add_folder("Beam"):
            self._beam_text = self._gui.add_markdown("Click a return, or give the number of a beam of this sweep.")
            self._beam = self._gui.add_number("beam", -1, min=-1, step=1)
            self._plot = self._gui.add_image(np.zeros((1, 1, 4), dtype=np.uint8), format="png", visible=False)
        self._beam.on_update(self._number_given)

    def _on(self, control: Any, what: str, **fields: Callable[[], Any]) -> None:
        """Let a control write fields of the choice and have something drawn anew."""

        def update(_: Any) -> None:
            if not _is_possible(control):
                return
            for name, value in fields.items():
                setattr(self._choice, name, value())
            self._changed(what)

        control.on_update(update)

    # ---- what the controls do ---------------------------------------------------------------------------------

    def play(self, on: bool) -> None:
        """Start or stop stepping through the sweeps."""
        self.playing = on
        self._play.label = "Pause" if on else "Play"
        self._changed("clouds")

    @property
    def seconds_per_sweep(self) -> float:
        """How long a sweep stays while playing."""
        return 1.0 / (float(self._speed.value) if _is_possible(self._speed) else _SWEEPS_PER_S)

    def step(self) -> None:
        """Go to the next sweep, after the last to the first."""
        self.slider.value = (self._choice.position + 1) % len(self._session.sweeps)
        self._choice.position = self.slider.value

    def beam(self) -> BeamAt | None:
        """Return the beam whose number was given; None if none."""
        row = int(self._beam.value)
        return None if row < 0 else BeamAt(int(self._session.sweeps[self._choice.position]), row)

    def _number_given(self, event: Any) -> None:
        if event.client is not None:  # by a person, not by `show_beam`
            self._changed("beam")

    def _toggle(self, _: Any) -> None:
        self.play(not self.playing)

    def _hidden(self) -> set[int]:
        return {i for i, switch in enumerate(self._switches) if not switch.value}

    def _rescale(self, _: Any) -> None:
        self._choice.limits.pop(self._choice.quantity, None)
        self._changed("clouds")

    # ---- what it shows ----------------------------------------------------------------------------------------

    def show(self, frame: Frame) -> None:
        """Write the legend, how much there is, and how much of it is drawn."""
        self._legend.image = draw_legend(frame.legend)
        lines = [f"**{name}**: {n:,} elements" for name, n in self._elements()]
        if self._session.layers:
            window = self._session.window(self._choice.position, self._choice.accumulate)
            numbers = f"sweep {window[-1]}" if len(window) == 1 else f"sweeps {window[0]} to {window[-1]}"
            thinned = f" of {frame.n_points:,}" if frame.n_drawn < frame.n_points else ""
            lines.insert(0, f"**{numbers}**: {frame.n_drawn:,}{thinned} points")
        text = "\n\n".join(lines + [f"*{note}*" for note in frame.notes])
        if self._status.content != text:
            self._status.content = text

    def fail(self, error: Exception) -> None:
        """Say what went wrong, and stop playing."""
        self.playing, self._play.label = False, "Play"
        self._status.content = f"*{error}*"

    def show_beam(self, view: BeamView | InputError | None) -> None:
        """Write what is known of a beam, or why nothing is."""
        self._plot.visible = isinstance(view, BeamView)
        if isinstance(view, BeamView):
            self._beam.value = view.at.row
            self._plot.image = draw_density(view)
            self._beam_text.content = _describe(view)
        elif view is not None:
            self._beam_text.content = f"*{view}*"

    def _elements(self) -> list[tuple[str, int]]:
        return [(layer.name, layer.world.size().elements) for layer in self._session.worlds]


def _is_possible(control: Any) -> bool:
    """Whether a control has a value that it offers: what comes from a browser may be anything."""
    options = getattr(control, "options", None)
    if options is not None:
        return control.value in options
    low, high = getattr(control, "min", None), getattr(control, "max", None)
    return (low is None or control.value >= low) and (high is None or control.value <= high)


def _describe(view: BeamView) -> str:
    lines = [f"sweep {view.at.sweep}, beam {view.at.row}, ring {view.ring}"]
    lines += [f"{name}: log density {value:.2f}" for name, value in view.log_density.items()]
    if not view.density:
        lines.append("*no learned world is shown: there is no density to plot*")
    return "\n\n".join(lines)


def draw_legend(legend: Legend) -> Picture:
    """Draw what the colours mean."""
    if legend.limits is None:
        return _draw_swatches(legend)
    figure = _new(3.0, 0.62)
    axes = figure.subplots()
    bar = scale(legend.quantity, np.linspace(0, 1, 256))
    low, high = legend.limits
    axes.imshow(bar[None], aspect="auto", extent=(low, high, 0, 1))
    axes.set(yticks=[], xlabel=TITLES[legend.quantity])
    _ink(axes)
    return _pixels(figure)


def draw_density(view: BeamView) -> Picture:
    """Draw the range densities of a beam, with the first ranges that the layers measured."""
    figure = _new(3.0, 1.9)
    axes = figure.subplots()
    low, high = choose_plot_span(view)
    for name, density in view.density.items():
        part = (density.range_m >= low) & (density.range_m <= high)
        label = f"{name}: no return {density.no_return:.0%}"
        axes.plot(density.range_m[part], density.density_per_m[part], color=_hex(view.colour[name]), lw=1, label=label)
    for name, range_m in view.measured_m.items():
        x = [range_m, range_m] if np.isfinite(range_m) else []
        said = f"{range_m:.3f} m" if x else "no return"
        # With a triangle on top of the frame: it is seen where the line is one with a peak.
        axes.plot(
            x, [0.0, 1.0][: len(x)], color=_hex(view.colour[name]), lw=0.9, ls="--", marker="v", ms=5, clip_on=False,
            markevery=[1] if x else None, transform=axes.get_xaxis_transform(), label=f"{name}: {said}",
        )  # fmt: skip
    axes.set(xlim=(low, high), xlabel="range [m]", ylabel="density [1/m]")
    axes.set_ylim(bottom=0)
    _ink(axes)
    axes.legend(fontsize=5.5, labelcolor=_INK, facecolor=_PAPER, edgecolor="none", framealpha=0.7)
    if view.density:
        axes.set_title(f"elements under {100 * SIGMA_M:.0f} cm are drawn that wide", fontsize=5.5, color=_INK)
    return _pixels(figure)


def _draw_swatches(legend: Legend) -> Picture:
    entries = legend.entries[:_MAX_ENTRIES] or (("nothing to see", UNKNOWN),)
    columns = 2 if legend.quantity == "label" else 1
    rows = -(-len(entries) // columns)
    figure = _new(3.0, 0.1 + 0.17 * rows)
    axes = figure.subplots()
    axes.set(xlim=(0, columns), ylim=(rows, 0))
    axes.axis("off")
    for i, (name, rgb) in enumerate(entries):
        x, y = i % columns, i // columns + 0.5
        axes.plot(x + 0.06, y, "s", color=_hex(rgb), ms=5, clip_on=False)
        axes.text(x + 0.06 + 0.08 * columns / 2, y, name, color=_INK, fontsize=7, va="center")
    return _pixels(figure)


def _new(width_in: float, height_in: float) -> Any:
    figure = new_figure(width_in, height_in)
    figure.set_facecolor("none")
    return figure


def _ink(axes: Any) -> None:
    axes.set_facecolor("none")
    axes.tick_params(colors=_INK, labelsize=6, width=0.5, length=2, pad=1)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=_INK, fontsize=6.5)
    for spine in axes.spines.values():
        spine.set(edgecolor="#555555", linewidth=0.5)


def _pixels(figure: Any) -> Picture:
    figure.set_dpi(_DPI)
    figure.canvas.draw()
    return np.array(figure.canvas.buffer_rgba(), dtype=np.uint8)


def _hex(rgb: Rgb) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)
