// SPDX-License-Identifier: Apache-2.0
// Beams, and the questions that single rays ask a scene.
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>

#include "bind/bind.hpp"
#include "trace/fire.hpp"
#include "trace/first_behind.hpp"
#include "trace/forecast.hpp"
#include "trace/pierce.hpp"

namespace hedgerow {
namespace {

void make_beams(HeldBeams* self, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
                const AnyArray& ring, const AnyArray& sweep, const std::array<double, 3>& scene_origin_m) {
    const auto pulses = values<std::int64_t>(pulse, "pulse", -1);
    const auto n = static_cast<std::ptrdiff_t>(pulses.size());
    new (self) HeldBeams{{values<double>(origin_m, "origin_m", n, 3),
                          values<float>(direction, "direction", n, 3),
                          pulses,
                          values<std::uint16_t>(ring, "ring", n),
                          values<std::int32_t>(sweep, "sweep", n),
                          {scene_origin_m[0], scene_origin_m[1], scene_origin_m[2]}},
                         {origin_m, direction, pulse, ring, sweep}};
    require_within(self->origin_m, "origin_m", kFarthest_m);
    require_within(self->direction, "direction", 2);
    require_within(std::span<const double>(scene_origin_m), "scene_origin_m", kFarthest_m);
}

struct Hits {
    explicit Hits(std::size_t n) : range_m(n), intensity(n), label(n), element(n), incidence_cosine(n) {}
    ReturnArrays arrays() const {
        return {range_m.values, intensity.values, label.values, element.values, incidence_cosine.values};
    }

    Fresh<Column<float>> range_m, intensity;
    Fresh<Column<std::uint16_t>> label;
    Fresh<Column<std::int64_t>> element;
    Fresh<Column<float>> incidence_cosine;
};

Hits fire_beams(Scene& scene, const HeldBeams& beams, RangeLimits limits, std::uint64_t seed, int threads,
                const nb::object& progress) {
    require_limits(limits);
    Hits hits(beams.size());
    const ReturnArrays out = hits.arrays();
    nb::gil_scoped_release release;
    fire(scene, beams, limits, seed, threads, ticker(progress), out);
    return hits;
}

Hits beams_first_behind(Scene& scene, const HeldBeams& beams, const AnyArray& near_m, const AnyArray& far_m,
                        const AnyArray& passed_labels, std::uint64_t seed, int threads, const nb::object& progress) {
    const auto n = static_cast<std::ptrdiff_t>(beams.size());
    const auto near = values<float>(near_m, "near_m", n), far = values<float>(far_m, "far_m", n);
    require_within(near, "near_m", kFarthest_m);
    if (!std::ranges::all_of(near, [](float each) { return each >= 0; })) throw nb::value_error("near_m: is negative");
    require_numbers(far, "far_m");
    LabelSet passed;
    for (const std::uint16_t label : values<std::uint16_t>(passed_labels, "passed_labels", -1)) passed.set(label);
    Hits hits(beams.size());
    const ReturnArrays out = hits.arrays();
    nb::gil_scoped_release release;
    first_behind(scene, beams, near, far, passed, seed, threads, ticker(progress), out);
    return hits;
}

struct PiercedElements {
    Fresh<Column<std::int64_t>> begin, element;
    Fresh<Column<float>> mean_m, sigma_m, permeability;
};

PiercedElements pierced_by(Scene& scene, const HeldBeams& beams, float max_range_m, int threads,
                           const nb::object& progress) {
    require_number(max_range_m, "max_range_m");
    Pierced found;
    {
        nb::gil_scoped_release release;
        found = pierced(scene, beams, max_range_m, threads, ticker(progress));
    }
    const std::size_t n = found.crossings.size();
    using Integers = Fresh<Column<std::int64_t>>;
    using Floats = Fresh<Column<float>>;
    const PiercedElements out{Integers(found.begin), Integers(n), Floats(n), Floats(n), Floats(n)};
    for (std::size_t i = 0; i < n; ++i) {
        const Crossing& crossing = found.crossings[i];
        out.element.values[i] = static_cast<std::int64_t>(crossing.element);
        out.mean_m.values[i] = crossing.mean_m;
        out.sigma_m.values[i] = crossing.sigma_m;
        out.permeability.values[i] = crossing.pass;
    }
    return out;
}

auto count_beams(Scene& scene, const HeldBeams& beams, const AnyArray& range_m, float max_range_m, float window_m,
                 const nb::object& boxes, int threads, const nb::object& progress) {
    const auto ranges = values<float>(range_m, "range_m", static_cast<std::ptrdiff_t>(beams.size()));
    require_number(max_range_m, "max_range_m");
    require_numbers(ranges, "range_m");
    std::span<const double> corners;
    const auto n_elements = static_cast<std::ptrdiff_t>(scene.n_elements());
    if (!boxes.is_none()) corners = values<double>(nb::cast<AnyArray>(boxes), "boxes_m", n_elements, 6);
    const Fresh<Column<std::uint32_t>> hits(scene.n_elements()), passes(scene.n_elements());
    std::ranges::fill(hits.values, 0u);
    std::ranges::fill(passes.values, 0u);
    {
        nb::gil_scoped_release release;
        count(scene, beams, ranges, max_range_m, window_m, corners, threads, ticker(progress), hits.values,
              passes.values);
    }
    return std::make_tuple(hits.get(), passes.get());
}

auto beams_log_likelihood(Scene& scene, const HeldBeams& beams, const AnyArray& range_m, RangeLimits limits,
                          float min_sigma_m, int threads, const nb::object& progress) {
    const auto ranges = values<float>(range_m, "range_m", static_cast<std::ptrdiff_t>(beams.size()));
    require_limits(limits);
    require_numbers(ranges, "range_m");
    const Fresh<Column<double>> log_density(beams.size());
    {
        nb::gil_scoped_release release;
        log_likelihood(scene, beams, ranges, limits, min_sigma_m, threads, ticker(progress), log_density.values);
    }
    return log_density.get();
}

struct Forecasts {
    Forecasts(std::size_t n, std::size_t n_scored)
        : returns(n), median_m(n), intensity(n), error_m(n_scored), spread_m(n_scored) {}

    Fresh<Column<double>> returns;
    Fresh<Column<float>> median_m, intensity;
    Fresh<Column<double>> error_m, spread_m;
};

Forecasts beams_forecast(Scene& scene, const HeldBeams& beams, const nb::object& range_m, RangeLimits limits,
                         float min_sigma_m, int threads, const nb::object& progress) {
    require_limits(limits);
    if (!std::isfinite(limits.max_m)) throw nb::value_error("limits: no return needs a finite far limit");
    std::span<const float> ranges;
    if (!range_m.is_none()) {
        ranges = values<float>(nb::cast<AnyArray>(range_m), "range_m", static_cast<std::ptrdiff_t>(beams.size()));
        require_numbers(ranges, "range_m");
    }
    const Forecasts out(beams.size(), range_m.is_none() ? 0 : beams.size());
    {
        nb::gil_scoped_release release;
        forecast(
            scene, beams, ranges, limits, min_sigma_m, threads, ticker(progress),
            {out.returns.values, out.median_m.values, out.intensity.values, out.error_m.values, out.spread_m.values});
    }
    return out;
}

}  // namespace

void bind_trace(nb::module_& m, nb::class_<Scene>& scene) {
    nb::class_<HeldBeams>(m, "BeamArrays", "Beams as all kernels take them; holds the arrays, does not copy them.")
        .def("__init__", make_beams, nb::kw_only(), nb::arg("origin_m").noconvert(), nb::arg("direction").noconvert(),
             nb::arg("pulse").noconvert(), nb::arg("ring").noconvert(), nb::arg("sweep").noconvert(),
             nb::arg("scene_origin_m"), "scene_origin_m: where the scene's own frame sits in the map.")
        .def("__len__", &HeldBeams::size);
    bind_settings(m, "RangeLimits", "A pulse stopped outside these gives no return.",
                  field("min_m", &RangeLimits::min_m), field("max_m", &RangeLimits::max_m));
    bind_answer(m, "Hits", "First return of each pulse; without one: inf, NaN, 0, -1, NaN.",
                field("range_m", &Hits::range_m), field("intensity", &Hits::intensity), field("label", &Hits::label),
                field("element", &Hits::element), field("incidence_cosine", &Hits::incidence_cosine));
    bind_answer(m, "Pierced",
                "Elements along each ray, nearest first; those of beam i stand at begin[i] to begin[i + 1].",
                field("begin", &PiercedElements::begin), field("element", &PiercedElements::element),
                field("mean_m", &PiercedElements::mean_m), field("sigma_m", &PiercedElements::sigma_m),
                field("permeability", &PiercedElements::permeability));
    bind_answer(m, "Forecasts",
                "What is forecast for each pulse; error_m and spread_m only where measured ranges were given.",
                field("returns", &Forecasts::returns), field("median_m", &Forecasts::median_m),
                field("intensity", &Forecasts::intensity), field("error_m", &Forecasts::error_m),
                field("spread_m", &Forecasts::spread_m));
    scene
        .def("forecast", beams_forecast, nb::arg("beams"), nb::kw_only(), nb::arg("range_m").none(), nb::arg("limits"),
             nb::arg("min_sigma_m"), nb::arg("threads"), nb::arg("progress").none(),
             "Distribution of the range of each pulse, without drawing from it.")
        .def("fire", fire_beams, nb::arg("beams"), nb::kw_only(), nb::arg("limits"), nb::arg("seed"),
             nb::arg("threads"), nb::arg("progress").none(), "First return of each pulse.")
        .def("pierced", pierced_by, nb::arg("beams"), nb::kw_only(), nb::arg("max_range_m"), nb::arg("threads"),
             nb::arg("progress").none(), "Elements along each ray, nearest first.")
        .def("count", count_beams, nb::arg("beams"), nb::kw_only(), nb::arg("range_m").noconvert(),
             nb::arg("max_range_m"), nb::arg("window_m"), nb::arg("boxes_m").none(), nb::arg("threads"),
             nb::arg("progress").none(), "Hits and passes of each element.")
        .def("log_likelihood", beams_log_likelihood, nb::arg("beams"), nb::kw_only(), nb::arg("range_m").noconvert(),
             nb::arg("limits"), nb::arg("min_sigma_m"), nb::arg("threads"), nb::arg("progress").none(),
             "Log density of each measured range.");
    m.def("first_behind", beams_first_behind, nb::arg("scene"), nb::arg("beams"), nb::kw_only(),
          nb::arg("near_m").noconvert(), nb::arg("far_m").noconvert(), nb::arg("passed_labels").noconvert(),
          nb::arg("seed"), nb::arg("threads"), nb::arg("progress").none(),
          "First element of each pulse from near_m to far_m whose label is not among those passed.");
}

}  // namespace hedgerow
