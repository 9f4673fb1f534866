// SPDX-License-Identifier: Apache-2.0
// Expectation maximisation on the ray likelihood.
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include "bind.hpp"
#include "quality.hpp"
#include "refine.hpp"

namespace hedgerow {
namespace {

auto sums_of(Scene& scene, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
             const AnyArray& ring, const AnyArray& sweep, std::array<double, 3> scene_origin_m, const AnyArray& range_m,
             float min_range_m, float max_range_m, float min_sigma_m, float outlier_share, int threads,
             const nb::object& progress) {
    const BeamArrays beams = beam_arrays(origin_m, direction, pulse, ring, sweep, scene_origin_m);
    const auto ranges = values<float>(range_m, "range_m", static_cast<std::ptrdiff_t>(beams.size()));
    const std::size_t n = scene.n_elements();
    const Fresh<std::int64_t> sums(n, kRefineSums);
    const Fresh<double> log_density(beams.size());
    std::ranges::fill(sums.values, 0);
    {
        nb::gil_scoped_release release;
        refine_sums(scene, beams, ranges, {{min_range_m, max_range_m}, min_sigma_m, outlier_share}, threads,
                    ticker(progress), sums.values, log_density.values);
    }
    return std::make_tuple(nb::cast<nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>>(sums.array),
                           log_density.column());
}

auto quality_of(Scene& scene, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
                const AnyArray& ring, const AnyArray& sweep, std::array<double, 3> scene_origin_m,
                const AnyArray& range_m, float min_range_m, float max_range_m, float min_sigma_m, float outlier_share,
                float error_weight, float hit_weight, float miss_weight, int threads, const nb::object& progress) {
    const BeamArrays beams = beam_arrays(origin_m, direction, pulse, ring, sweep, scene_origin_m);
    const auto ranges = values<float>(range_m, "range_m", static_cast<std::ptrdiff_t>(beams.size()));
    const std::size_t n = scene.n_elements();
    const Fresh<std::int64_t> sums(n, kQualitySums);
    const Fresh<double> scores(beams.size(), 3);
    std::ranges::fill(sums.values, 0);
    {
        nb::gil_scoped_release release;
        quality_sums(scene, beams, ranges,
                     {{min_range_m, max_range_m}, min_sigma_m, outlier_share, error_weight, hit_weight, miss_weight},
                     threads, ticker(progress), sums.values, scores.values);
    }
    return std::make_tuple(nb::cast<nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>>(sums.array),
                           nb::cast<nb::ndarray<nb::numpy, double, nb::ndim<2>>>(scores.array));
}

}  // namespace

void bind_refine(nb::module_& m) {
    m.def("refine_sums", sums_of, nb::arg("scene"), nb::arg("origin_m").noconvert(), nb::arg("direction").noconvert(),
          nb::arg("pulse").noconvert(), nb::arg("ring").noconvert(), nb::arg("sweep").noconvert(),
          nb::arg("scene_origin_m"), nb::arg("range_m").noconvert(), nb::arg("min_range_m"), nb::arg("max_range_m"),
          nb::arg("min_sigma_m"), nb::arg("outlier_share"), nb::arg("threads"), nb::arg("progress").none(),
          "One round's sums per element, fixed point of 30 bits, and the log density of each measured range.");
    m.def("quality_sums", quality_of, nb::arg("scene"), nb::arg("origin_m").noconvert(),
          nb::arg("direction").noconvert(), nb::arg("pulse").noconvert(), nb::arg("ring").noconvert(),
          nb::arg("sweep").noconvert(), nb::arg("scene_origin_m"), nb::arg("range_m").noconvert(),
          nb::arg("min_range_m"), nb::arg("max_range_m"), nb::arg("min_sigma_m"), nb::arg("outlier_share"),
          nb::arg("error_weight"), nb::arg("hit_weight"), nb::arg("miss_weight"), nb::arg("threads"),
          nb::arg("progress").none(),
          "Gradient of the score of the beams by each element, fixed point of 30 bits, and three scores per beam.");
    m.attr("QUALITY_SUMS") = static_cast<int>(kQualitySums);
    m.attr("REFINE_FIXED") = kFixed;
    m.attr("REFINE_SUMS") = static_cast<int>(kRefineSums);
}

}  // namespace hedgerow
