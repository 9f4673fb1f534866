# SPDX-License-Identifier: Apache-2.0
"""Range noise of surfaces by incidence angle (Browning 2012 §3.3.2) and range.

Equations: docs/models.md §2.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arguments import as_number
from hedgerow.base.arrays import FARTHEST_M

if TYPE_CHECKING:
    from hedgerow import _core


@dataclass(frozen=True, slots=True)
class SurfaceNoise:
    """Range noise of triangles: sigma² = sigma0² + (sigma_per_m r)² + sigma_a² (sin θ / cos² θ)².

    θ is the incidence angle (Browning 2012 eq. 1), r the range.
    """

    sigma0_m: float = 0.0
    """Standard deviation at normal incidence [m]; Browning 2012 found 0.015 for an HDL-64E."""
    sigma_a_m: float = 0.0
    """How it grows with the incidence angle [m]; Browning 2012 found 0.0014."""
    max_incidence_rad: float = float(np.radians(85))
    """The angle is capped here, so that a grazing ray keeps a finite sigma."""
    sigma_per_m: float = 0.0
    """How it grows with the range [m per m]: timing jitter and clock drift, on top of what geometry gives."""

    def __post_init__(self) -> None:
        """Refuse what is no standard deviation or no angle."""
        for name in ("sigma0_m", "sigma_a_m", "sigma_per_m"):
            as_number(name, getattr(self, name), 0, FARTHEST_M, "a finite number of 0 or more")
        below = float(np.nextafter(np.pi / 2, 0))
        as_number("max_incidence_rad", self.max_incidence_rad, 0, below, "0 to below pi/2")

    def sigma_m(self, cosine: NDArray[np.floating], range_m: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the standard deviation of ranges at cosines of the incidence angle [m]; the engine has its own."""
        capped = np.maximum(np.asarray(cosine, dtype=np.float64), np.cos(self.max_incidence_rad))
        slope_squared = (1 - capped**2) / capped**4
        return np.sqrt(self.sigma0_m**2 + (self.sigma_per_m * range_m) ** 2 + self.sigma_a_m**2 * slope_squared)

    def native(self) -> "_core.SurfaceNoise":
        """Return it as the engine takes it."""
        from hedgerow import _core  # here, so that describing a world does not load the engine

        return _core.SurfaceNoise(
            sigma0_m=self.sigma0_m,
            sigma_a_m=self.sigma_a_m,
            min_cosine=float(np.cos(self.max_incidence_rad)),
            sigma_per_m=self.sigma_per_m,
        )


NOISELESS = SurfaceNoise()
"""Exact ranges."""
