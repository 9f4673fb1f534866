// SPDX-License-Identifier: Apache-2.0
// Remembered points: clouds of them, and which one each beam sees.
#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <new>

#include "bind.hpp"
#include "points.hpp"

namespace hedgerow {
namespace {

void make_cloud(PointCloud* self, const AnyArray& position, const AnyArray& normal, const AnyArray& intensity,
                const AnyArray& label, float reach_m, std::int64_t first) {
    const auto labels = values<std::uint16_t>(label, "label", -1);
    const auto n = static_cast<std::ptrdiff_t>(labels.size());
    const PointArrays arrays{values<float>(position, "position", n, 3), values<float>(normal, "normal", n, 3),
                             values<float>(intensity, "intensity", n), labels};
    nb::gil_scoped_release release;
    new (self) PointCloud(arrays, reach_m, first);
}

auto see_points(const std::vector<std::shared_ptr<PointCloud>>& clouds, const AnyArray& origin_m,
                const AnyArray& direction, const AnyArray& pulse, const AnyArray& ring, const AnyArray& sweep,
                std::array<double, 3> scene_origin_m, float min_range_m, float max_range_m, bool first_along,
                std::array<float, 3> noise, int threads, const nb::object& progress) {
    const BeamArrays beams = beam_arrays(origin_m, direction, pulse, ring, sweep, scene_origin_m);
    const Fresh<std::int64_t> element(beams.size());
    const Fresh<float> mean_m(beams.size()), sigma_m(beams.size()), intensity(beams.size()), cosine(beams.size());
    const Fresh<std::uint16_t> label(beams.size());
    {
        nb::gil_scoped_release release;
        see(clouds, beams, {min_range_m, max_range_m}, first_along ? Pick::first : Pick::nearest,
            {noise[0] * noise[0], noise[1] * noise[1], noise[2]}, threads, ticker(progress),
            {element.values, mean_m.values, sigma_m.values, intensity.values, label.values, cosine.values});
    }
    return std::make_tuple(element.column(), mean_m.column(), sigma_m.column(), intensity.column(), label.column(),
                           cosine.column());
}

}  // namespace

void bind_points(nb::module_& m) {
    nb::class_<PointCloud>(m, "PointCloud", "Remembered points, numbered from `first`; a beam sees those within reach.")
        .def("__init__", make_cloud, nb::arg("position").noconvert(), nb::arg("normal").noconvert(),
             nb::arg("intensity").noconvert(), nb::arg("label").noconvert(), nb::arg("reach_m"), nb::arg("first"))
        .def("__len__", &PointCloud::size);
    m.def("see_points", see_points, nb::arg("clouds"), nb::arg("origin_m").noconvert(),
          nb::arg("direction").noconvert(), nb::arg("pulse").noconvert(), nb::arg("ring").noconvert(),
          nb::arg("sweep").noconvert(), nb::arg("scene_origin_m"), nb::arg("min_range_m"), nb::arg("max_range_m"),
          nb::arg("first_along"), nb::arg("noise"), nb::arg("threads"), nb::arg("progress").none(),
          "The point that each beam sees: (element, mean_m, sigma_m, intensity, label, incidence_cosine); noise is "
          "(sigma0_m, sigma_a_m, min_cosine).");
}

}  // namespace hedgerow
