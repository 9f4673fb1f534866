// SPDX-License-Identifier: Apache-2.0
// Scenes: what they are made of.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "bind/bind.hpp"

namespace hedgerow {
namespace {

// Counts of labels, and the arrays that they are read from.
struct HeldLabels : LabelArrays {
    std::array<AnyArray, 3> held;
};

void make_labels(HeldLabels* self, const AnyArray& first, const AnyArray& label, const AnyArray& count) {
    const auto labels = values<std::uint16_t>(label, "labels.label", -1);
    new (self) HeldLabels{{values<std::int64_t>(first, "labels.first", -1), labels,
                           values<std::int64_t>(count, "labels.count", static_cast<std::ptrdiff_t>(labels.size()))},
                          {first, label, count}};
}

// The labels of n elements; nullptr if none has several.
LabelArrays labels_of(const HeldLabels* labels, std::ptrdiff_t n) {
    if (labels == nullptr) return {};
    const auto& [first, label, count] = static_cast<const LabelArrays&>(*labels);
    const bool whole = std::ssize(first) == n + 1 && first.front() == 0 && first.back() == std::ssize(label) &&
                       label.size() <= std::numeric_limits<std::uint32_t>::max();
    if (!whole || !std::ranges::is_sorted(first)) throw nb::value_error("labels.first: does not fit to the others");
    if (!std::ranges::all_of(count, [](std::int64_t each) { return each > 0; }))
        throw nb::value_error("labels.count: expected 1 or more");
    return *labels;
}

void add_mesh(Scene& scene, const AnyArray& vertices, const AnyArray& triangles, const AnyArray& permeability,
              const AnyArray& label, const AnyArray& reflectance, const AnyArray& intensity_sigma, bool lambertian,
              const AnyArray& noise_group, const std::vector<SurfaceNoise>& noise, Answer answer,
              const HeldLabels* labels) {
    const auto corners = values<std::uint32_t>(triangles, "triangles", -1, 3);
    const auto n = static_cast<std::ptrdiff_t>(corners.size() / 3);
    const MeshArrays arrays{values<float>(vertices, "vertices", -1, 3),
                            corners,
                            values<float>(permeability, "permeability", n),
                            values<std::uint16_t>(label, "label", n),
                            values<float>(reflectance, "reflectance", n),
                            values<float>(intensity_sigma, "intensity_sigma", n),
                            values<std::uint8_t>(noise_group, "noise_group", n),
                            lambertian,
                            answer,
                            labels_of(labels, n)};
    require_within(arrays.vertices, "vertices", kFarthest_m);
    for (const std::uint32_t corner : corners)
        if (corner >= arrays.vertices.size() / 3) throw nb::value_error("triangles: names a vertex that is not there");
    for (const std::uint8_t group : arrays.noise_group)
        if (group >= noise.size()) throw nb::value_error("noise_group: names a group that is not there");
    nb::gil_scoped_release release;
    scene.add_mesh(arrays, noise);
}

void add_gaussians(Scene& scene, const AnyArray& mean_m, const AnyArray& whitening, const AnyArray& stop,
                   const AnyArray& label, const AnyArray& intensity, const AnyArray& intensity_sigma, StopLaw law,
                   float tau, Answer answer, const HeldLabels* labels) {
    const auto stops = values<float>(stop, "stop", -1);
    const auto n = static_cast<std::ptrdiff_t>(stops.size());
    const GaussianArrays arrays{values<float>(mean_m, "mean_m", n, 3),
                                values<float>(whitening, "whitening", n, 6),
                                stops,
                                values<std::uint16_t>(label, "label", n),
                                values<float>(intensity, "intensity", n),
                                values<float>(intensity_sigma, "intensity_sigma", n),
                                answer,
                                labels_of(labels, n)};
    require_within(arrays.mean, "mean_m", kFarthest_m);
    require_within(arrays.whitening, "whitening", kFarthest_m);
    require_number(tau, "tau");
    nb::gil_scoped_release release;
    scene.add_gaussians(arrays, law, tau);
}

void place(Scene& scene, std::shared_ptr<Scene> other, const AnyArray& transforms, const AnyArray& label,
           std::int64_t first_element) {
    const auto matrices = values<double>(transforms, "transforms", -1, 12);
    const auto labels = values<std::int32_t>(label, "label", static_cast<std::ptrdiff_t>(matrices.size() / 12));
    require_within(matrices, "transforms", kFarthest_m);
    if (first_element >= 0 && labels.size() != 1) throw nb::value_error("first_element: wants exactly one transform");
    for (std::size_t i = 0; i < labels.size(); ++i) {
        Affine to_world;
        std::copy_n(&matrices[12 * i], 12, to_world.begin());
        scene.place(other, to_world, labels[i], first_element);
    }
}

void make_noise(SurfaceNoise* self, float sigma0_m, float sigma_a_m, float min_cosine, float sigma_per_m) {
    new (self) SurfaceNoise{sigma0_m * sigma0_m, sigma_a_m * sigma_a_m, min_cosine, sigma_per_m * sigma_per_m};
}

}  // namespace

nb::class_<Scene> bind_scene(nb::module_& m) {
    nb::enum_<StopLaw>(m, "StopLaw", "How a Gaussian stops rays.")
        .value("permeability", StopLaw::permeability)
        .value("extinction", StopLaw::extinction)
        .value("depth", StopLaw::depth);
    nb::enum_<Answer>(m, "Answer", "What of a pulse with width an element answers.")
        .value("sub_ray", Answer::sub_ray)
        .value("pulse", Answer::pulse);
    nb::class_<SurfaceNoise>(m, "SurfaceNoise", "Range noise of surfaces by incidence angle and range.")
        .def("__init__", make_noise, nb::kw_only(), nb::arg("sigma0_m"), nb::arg("sigma_a_m"), nb::arg("min_cosine"),
             nb::arg("sigma_per_m"));
    nb::class_<HeldLabels>(m, "LabelArrays", "How often which label was seen: element i has first[i] to first[i + 1].")
        .def("__init__", make_labels, nb::kw_only(), nb::arg("first").noconvert(), nb::arg("label").noconvert(),
             nb::arg("count").noconvert());

    return nb::class_<Scene>(m, "Scene", "Meshes, Gaussians and placed scenes; frozen when first fired at or placed.")
        .def(nb::init<>())
        .def("add_mesh", add_mesh, nb::kw_only(), nb::arg("vertices").noconvert(), nb::arg("triangles").noconvert(),
             nb::arg("permeability").noconvert(), nb::arg("label").noconvert(), nb::arg("reflectance").noconvert(),
             nb::arg("intensity_sigma").noconvert(), nb::arg("lambertian"), nb::arg("noise_group").noconvert(),
             nb::arg("noise"), nb::arg("answer").noconvert(), nb::arg("labels").none(),
             "Adds triangles; noise is that of each group, labels are of all triangles, or None if none has several.")
        .def("add_gaussians", add_gaussians, nb::kw_only(), nb::arg("mean_m").noconvert(),
             nb::arg("whitening").noconvert(), nb::arg("stop").noconvert(), nb::arg("label").noconvert(),
             nb::arg("intensity").noconvert(), nb::arg("intensity_sigma").noconvert(), nb::arg("law").noconvert(),
             nb::arg("tau"), nb::arg("answer").noconvert(), nb::arg("labels").none(),
             "Adds Gaussians; stop is a permeability, an extinction in 1/m or a depth, labels as for add_mesh.")
        .def("place", place, nb::arg("scene"), nb::kw_only(), nb::arg("transforms").noconvert(),
             nb::arg("label").noconvert(), nb::arg("first_element"),
             "Places a scene once for each (3x4 by rows, float64) transform; first_element -1 numbers through.")
        .def(
            "pulse_stretches", [](Scene& scene) { return Fresh<Column<std::int64_t>>(scene.pulse_stretches()).get(); },
            "Begin and end of each stretch of elements that answer pulses, ascending; freezes the scene.")
        .def("unfold_up_to", &Scene::unfold_up_to, nb::arg("most"),
             "Copies of Gaussians, all together, up to which they stand in one search tree; more are instances.")
        .def(
            "build", [](Scene& scene) { scene.embree(Purpose::fire); }, nb::call_guard<nb::gil_scoped_release>(),
            "Builds what firing needs now rather than at the first firing.")
        .def(
            "embree_address",
            [](Scene& scene) { return reinterpret_cast<std::uintptr_t>(scene.embree(Purpose::fire)); },
            "Address of the Embree scene that firing traces, for benchmarks.")
        .def_prop_ro("n_elements", &Scene::n_elements)
        .def("answers", &Scene::answers, nb::arg("answer").noconvert(), "Whether any element answers that.")
        .def_prop_ro("max_sigma_m", &Scene::max_sigma_m,
                     "No element at range r draws ranges with a larger deviation than this plus r max_sigma_per_m.")
        .def_prop_ro("max_sigma_per_m", &Scene::max_sigma_per_m);
}

}  // namespace hedgerow
