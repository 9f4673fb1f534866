// SPDX-License-Identifier: Apache-2.0
// Remembered points: clouds of them, and which one each beam sees.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <new>

#include "bind/bind.hpp"
#include "trace/see_points.hpp"

namespace hedgerow {
namespace {

void make_cloud(PointCloud* self, const AnyArray& position, const AnyArray& normal, const AnyArray& intensity,
                const AnyArray& label, float reach_m, std::int64_t first) {
    const auto labels = values<std::uint16_t>(label, "label", -1);
    const auto n = static_cast<std::ptrdiff_t>(labels.size());
    const PointArrays arrays{values<float>(position, "position", n, 3), values<float>(normal, "normal", n, 3),
                             values<float>(intensity, "intensity", n), labels};
    require_within(arrays.position, "position", kFarthest_m);
    require_within(std::span<const float>(&reach_m, 1), "reach_m", kFarthest_m);
    if (first < 0 || first > std::int64_t{1} << 62) throw nb::value_error("first: is negative, or too large");
    nb::gil_scoped_release release;
    new (self) PointCloud(arrays, reach_m, first);
}

struct SeenPoints {
    explicit SeenPoints(std::size_t n)
        : element(n), mean_m(n), sigma_m(n), intensity(n), label(n), incidence_cosine(n) {}

    Fresh<Column<std::int64_t>> element;
    Fresh<Column<float>> mean_m, sigma_m, intensity;
    Fresh<Column<std::uint16_t>> label;
    Fresh<Column<float>> incidence_cosine;
};

SeenPoints points_seen(const std::vector<std::shared_ptr<PointCloud>>& clouds, const HeldBeams& beams,
                       RangeLimits limits, Pick pick, const SurfaceNoise& noise, int threads,
                       const nb::object& progress) {
    require_limits(limits);
    SeenPoints seen(beams.size());
    const SeenArrays out{seen.element.values,   seen.mean_m.values, seen.sigma_m.values,
                         seen.intensity.values, seen.label.values,  seen.incidence_cosine.values};
    nb::gil_scoped_release release;
    see_points(clouds, beams, limits, pick, noise, threads, ticker(progress), out);
    return seen;
}

}  // namespace

void bind_points(nb::module_& m) {
    nb::enum_<Pick>(m, "Pick", "Which point a beam sees: the nearest to its line, or the first along it.")
        .value("nearest", Pick::nearest)
        .value("first", Pick::first);
    nb::class_<PointCloud>(m, "PointCloud", "Remembered points, numbered from `first`; a beam sees those within reach.")
        .def("__init__", make_cloud, nb::kw_only(), nb::arg("position").noconvert(), nb::arg("normal").noconvert(),
             nb::arg("intensity").noconvert(), nb::arg("label").noconvert(), nb::arg("reach_m"), nb::arg("first"))
        .def("__len__", &PointCloud::size);
    bind_answer(m, "SeenPoints", "The point that each beam sees; without one: -1, inf, NaN, NaN, 0, NaN.",
                field("element", &SeenPoints::element), field("mean_m", &SeenPoints::mean_m),
                field("sigma_m", &SeenPoints::sigma_m), field("intensity", &SeenPoints::intensity),
                field("label", &SeenPoints::label), field("incidence_cosine", &SeenPoints::incidence_cosine));
    m.def("see_points", points_seen, nb::arg("clouds"), nb::arg("beams"), nb::kw_only(), nb::arg("limits"),
          nb::arg("pick").noconvert(), nb::arg("noise"), nb::arg("threads"), nb::arg("progress").none(),
          "The point that each beam sees.");
}

}  // namespace hedgerow
