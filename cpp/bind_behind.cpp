// SPDX-License-Identifier: Apache-2.0
// What lies behind returns of some labels.
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include <array>

#include "behind.hpp"
#include "bind.hpp"

namespace hedgerow {
namespace {

auto behind_beams(Scene& scene, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
                  const AnyArray& ring, const AnyArray& sweep, std::array<double, 3> scene_origin_m,
                  const AnyArray& near_m, const AnyArray& far_m, const AnyArray& passed_labels, std::uint64_t seed,
                  int threads, const nb::object& progress) {
    const BeamArrays beams = beam_arrays(origin_m, direction, pulse, ring, sweep, scene_origin_m);
    const auto n = static_cast<std::ptrdiff_t>(beams.size());
    const auto near = values<float>(near_m, "near_m", n), far = values<float>(far_m, "far_m", n);
    LabelSet passed;
    for (const std::uint16_t label : values<std::uint16_t>(passed_labels, "passed_labels", -1)) passed.set(label);
    const Fresh<float> range_m(beams.size()), intensity(beams.size()), cosine(beams.size());
    const Fresh<std::uint16_t> label(beams.size());
    const Fresh<std::int64_t> element(beams.size());
    {
        nb::gil_scoped_release release;
        behind(scene, beams, near, far, passed, seed, threads, ticker(progress),
               {range_m.values, intensity.values, label.values, element.values, cosine.values});
    }
    return std::make_tuple(range_m.column(), intensity.column(), label.column(), element.column(), cosine.column());
}

}  // namespace

void bind_behind(nb::module_& m) {
    m.def(
        "behind", behind_beams, nb::arg("scene"), nb::arg("origin_m").noconvert(), nb::arg("direction").noconvert(),
        nb::arg("pulse").noconvert(), nb::arg("ring").noconvert(), nb::arg("sweep").noconvert(),
        nb::arg("scene_origin_m"), nb::arg("near_m").noconvert(), nb::arg("far_m").noconvert(),
        nb::arg("passed_labels").noconvert(), nb::arg("seed"), nb::arg("threads"), nb::arg("progress").none(),
        "First element of each pulse from near_m to far_m whose label is not among those passed: (range_m, intensity, "
        "label, element, incidence_cosine).");
}

}  // namespace hedgerow
