// SPDX-License-Identifier: Apache-2.0
// Pulses with width and the receiver.
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "beam.hpp"
#include "bind.hpp"

namespace hedgerow {
namespace {

Receiver receiver_of(int mode, float cutoff_m, float threshold, int max_returns) {
    if (mode < 0 || mode > static_cast<int>(ReturnMode::waveform)) throw nb::value_error("mode: is not one of them");
    if (max_returns < 1 || max_returns > kMaxSubRays) throw nb::value_error("max_returns: must be from 1 to 81");
    return {static_cast<ReturnMode>(mode), cutoff_m, threshold, max_returns};
}

// How many returns a pulse can have.
int returns_per_pulse(const Receiver& receiver) {
    switch (receiver.mode) {
        case ReturnMode::strongest_and_last:
            return 2;
        case ReturnMode::all:
        case ReturnMode::waveform:
            return receiver.max_returns;
        default:
            return 1;
    }
}

Spot spot_of(const AnyArray& points, const AnyArray& cells, const AnyArray& share, bool round,
             const std::array<float, 2>& half_m, const std::array<float, 2>& tangent) {
    const auto shares = values<float>(share, "share", -1);
    if (shares.empty() || shares.size() > kMaxSubRays) throw nb::value_error("share: expected 1 to 81 sub-rays");
    const auto n = static_cast<std::ptrdiff_t>(shares.size());
    const bool drawn = cells.size() > 0;
    return {values<float>(points, "points", drawn ? 0 : n, 2),
            values<float>(cells, "cells", drawn ? n : 0, 4),
            shares,
            round,
            {half_m[0], half_m[1]},
            {tangent[0], tangent[1]}};
}

// Columns of returns or of sub-rays.
struct FreshColumns {
    FreshColumns(std::size_t n, std::size_t columns)
        : range_m(n, columns), intensity(n, columns), label(n, columns), element(n, columns) {}
    const Fresh<float> range_m, intensity;
    const Fresh<std::uint16_t> label;
    const Fresh<std::int64_t> element;
};

auto fire_beams(Scene& scene, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
                const AnyArray& ring, const AnyArray& sweep, std::array<double, 3> scene_origin_m,
                const AnyArray& points, const AnyArray& cells, const AnyArray& share, bool round,
                std::array<float, 2> half_m, std::array<float, 2> tangent, float falloff_m, float unknown_intensity,
                float min_range_m, float max_range_m, int mode, float cutoff_m, float threshold, int max_returns,
                double fwhm_m, double step_m, bool keep_sub_rays, std::int64_t first_sample, std::size_t n_samples,
                std::uint64_t seed, int threads, const nb::object& progress) {
    const BeamArrays beams = beam_arrays(origin_m, direction, pulse, ring, sweep, scene_origin_m);
    const Receiver receiver = receiver_of(mode, cutoff_m, threshold, max_returns);
    const bool digital = receiver.mode == ReturnMode::waveform;
    if (digital && !(fwhm_m > 0 && step_m > 0)) throw nb::value_error("fwhm_m, step_m: must be above 0");
    const BeamSettings settings{spot_of(points, cells, share, round, half_m, tangent),
                                {falloff_m, unknown_intensity},
                                {min_range_m, max_range_m},
                                receiver,
                                digital ? std::optional(Digitiser{fwhm_m, step_m}) : std::nullopt,
                                seed};
    const std::size_t n = beams.size(), per_pulse = static_cast<std::size_t>(returns_per_pulse(receiver));
    const std::size_t n_sub_rays = settings.spot.share.size();
    const FreshColumns echoes(n, per_pulse), sub_rays(keep_sub_rays ? n : 0, n_sub_rays);
    const Fresh<float> width_m(digital ? n : 0, per_pulse), samples(digital && n_samples > 0 ? n : 0, n_samples);
    {
        nb::gil_scoped_release release;
        const BeamOutput out{
            {static_cast<int>(per_pulse), echoes.range_m.values, echoes.intensity.values, echoes.label.values,
             echoes.element.values, width_m.values},
            {sub_rays.range_m.values, sub_rays.intensity.values, sub_rays.label.values, sub_rays.element.values},
            {samples.values, static_cast<std::ptrdiff_t>(first_sample), n_samples}};
        fire_beam(scene, beams, settings, threads, ticker(progress), out);
    }
    return std::make_tuple(echoes.range_m.table(), echoes.intensity.table(), echoes.label.table(),
                           echoes.element.table(), width_m.table(), sub_rays.range_m.table(),
                           sub_rays.intensity.table(), sub_rays.label.table(), sub_rays.element.table(),
                           samples.table());
}

}  // namespace

void bind_beam(nb::module_& m) {
    m.def("fire_beam", fire_beams, nb::arg("scene"), nb::arg("origin_m").noconvert(), nb::arg("direction").noconvert(),
          nb::arg("pulse").noconvert(), nb::arg("ring").noconvert(), nb::arg("sweep").noconvert(),
          nb::arg("scene_origin_m"), nb::arg("points").noconvert(), nb::arg("cells").noconvert(),
          nb::arg("share").noconvert(), nb::arg("round"), nb::arg("half_m"), nb::arg("tangent"), nb::arg("falloff_m"),
          nb::arg("unknown_intensity"), nb::arg("min_range_m"), nb::arg("max_range_m"), nb::arg("mode"),
          nb::arg("cutoff_m"), nb::arg("threshold"), nb::arg("max_returns"), nb::arg("fwhm_m"), nb::arg("step_m"),
          nb::arg("keep_sub_rays"), nb::arg("first_sample"), nb::arg("n_samples"), nb::arg("seed"), nb::arg("threads"),
          nb::arg("progress").none(),
          "Returns of pulses with width, (N, R) each, nearest first: (range_m, intensity, label, element, width_m), "
          "then range_m, intensity, label and element of the sub-rays, and the waveforms, if wanted. Modes: 0 first, 1 "
          "strongest, 2 last, 3 strongest and last, 4 all, 5 waveform.");
}

}  // namespace hedgerow
