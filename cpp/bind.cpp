// SPDX-License-Identifier: Apache-2.0
// The module hedgerow._core: the scene and its kernels; other topics add theirs from files of their own.
#include "bind.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "fire.hpp"
#include "pierce.hpp"
#include "place.hpp"

using namespace hedgerow;

namespace {

// Labels of n elements, some of which have several; three empty arrays if none has.
LabelArrays label_arrays(const std::array<AnyArray, 3>& columns, std::ptrdiff_t n) {
    const auto first = values<std::int64_t>(columns[0], "labels.first", -1);
    const auto label = values<std::uint16_t>(columns[1], "labels.label", -1);
    const auto count = values<std::int64_t>(columns[2], "labels.count", static_cast<std::ptrdiff_t>(label.size()));
    if (first.empty() && label.empty()) return {};
    const bool whole = std::ssize(first) == n + 1 && first.front() == 0 && first.back() == std::ssize(label) &&
                       label.size() <= std::numeric_limits<std::uint32_t>::max();
    if (!whole || !std::ranges::is_sorted(first)) throw nb::value_error("labels.first: does not fit to the others");
    if (!std::ranges::all_of(count, [](std::int64_t each) { return each > 0; }))
        throw nb::value_error("labels.count: expected 1 or more");
    return {first, label, count};
}

void add_mesh(Scene& scene, const AnyArray& vertices, const AnyArray& triangles, const AnyArray& permeability,
              const AnyArray& label, const AnyArray& reflectance, const AnyArray& intensity_sigma, bool lambertian,
              const AnyArray& noise_group, const std::vector<std::array<float, 4>>& noise,
              const std::array<AnyArray, 3>& labels) {
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
                            label_arrays(labels, n)};
    for (const std::uint32_t corner : corners)
        if (corner >= arrays.vertices.size() / 3) throw nb::value_error("triangles: names a vertex that is not there");
    for (const std::uint8_t group : arrays.noise_group)
        if (group >= noise.size()) throw nb::value_error("noise_group: names a group that is not there");
    std::vector<NoiseGroup> groups;
    for (const auto& g : noise) groups.push_back(noise_of(g));
    nb::gil_scoped_release release;
    scene.add_mesh(arrays, groups);
}

void add_gaussians(Scene& scene, const AnyArray& mean_m, const AnyArray& whitening, const AnyArray& stop,
                   const AnyArray& label, const AnyArray& intensity, const AnyArray& intensity_sigma, StopLaw law,
                   float tau, const std::array<AnyArray, 3>& labels) {
    const auto stops = values<float>(stop, "stop", -1);
    const auto n = static_cast<std::ptrdiff_t>(stops.size());
    const GaussianArrays arrays{values<float>(mean_m, "mean_m", n, 3),
                                values<float>(whitening, "whitening", n, 6),
                                stops,
                                values<std::uint16_t>(label, "label", n),
                                values<float>(intensity, "intensity", n),
                                values<float>(intensity_sigma, "intensity_sigma", n),
                                label_arrays(labels, n)};
    nb::gil_scoped_release release;
    scene.add_gaussians(arrays, law, tau);
}

void place_scenes(Scene& scene, std::shared_ptr<Scene> other, const AnyArray& transforms, const AnyArray& label,
                  std::int64_t first_element) {
    const auto matrices = values<double>(transforms, "transforms", -1, 12);
    const auto labels = values<std::int32_t>(label, "label", static_cast<std::ptrdiff_t>(matrices.size() / 12));
    if (first_element >= 0 && labels.size() != 1) throw nb::value_error("first_element: wants exactly one transform");
    for (std::size_t i = 0; i < labels.size(); ++i) {
        Affine to_world;
        std::copy_n(&matrices[12 * i], 12, to_world.begin());
        scene.place(other, to_world, labels[i], first_element);
    }
}

auto fire_beams(Scene& scene, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
                const AnyArray& ring, const AnyArray& sweep, std::array<double, 3> scene_origin_m, float min_range_m,
                float max_range_m, std::uint64_t seed, int threads, const nb::object& progress) {
    const BeamArrays beams = beam_arrays(origin_m, direction, pulse, ring, sweep, scene_origin_m);
    const Fresh<float> range_m(beams.size()), intensity(beams.size()), cosine(beams.size());
    const Fresh<std::uint16_t> label(beams.size());
    const Fresh<std::int64_t> element(beams.size());
    {
        nb::gil_scoped_release release;
        fire(scene, beams, {min_range_m, max_range_m}, seed, threads, ticker(progress),
             {range_m.values, intensity.values, label.values, element.values, cosine.values});
    }
    return std::make_tuple(range_m.column(), intensity.column(), label.column(), element.column(), cosine.column());
}

auto pierced_by(Scene& scene, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
                const AnyArray& ring, const AnyArray& sweep, std::array<double, 3> scene_origin_m, float max_range_m,
                int threads, const nb::object& progress) {
    const BeamArrays beams = beam_arrays(origin_m, direction, pulse, ring, sweep, scene_origin_m);
    Pierced found;
    {
        nb::gil_scoped_release release;
        found = pierced(scene, beams, max_range_m, threads, ticker(progress));
    }
    const std::size_t n = found.crossings.size();
    const Fresh<std::int64_t> begin(found.begin.size()), element(n);
    const Fresh<float> mean_m(n), sigma_m(n), pass(n);
    std::copy(found.begin.begin(), found.begin.end(), begin.values.begin());
    for (std::size_t i = 0; i < n; ++i) {
        const Crossing& crossing = found.crossings[i];
        element.values[i] = static_cast<std::int64_t>(crossing.element);
        mean_m.values[i] = crossing.mean_m;
        sigma_m.values[i] = crossing.sigma_m;
        pass.values[i] = crossing.pass;
    }
    return std::make_tuple(begin.column(), element.column(), mean_m.column(), sigma_m.column(), pass.column());
}

auto count_beams(Scene& scene, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
                 const AnyArray& ring, const AnyArray& sweep, std::array<double, 3> scene_origin_m,
                 const AnyArray& range_m, float max_range_m, float window_m, int threads, const nb::object& progress) {
    const BeamArrays beams = beam_arrays(origin_m, direction, pulse, ring, sweep, scene_origin_m);
    const auto ranges = values<float>(range_m, "range_m", static_cast<std::ptrdiff_t>(beams.size()));
    const Fresh<std::uint32_t> hits(scene.n_elements()), passes(scene.n_elements());
    std::ranges::fill(hits.values, 0u);
    std::ranges::fill(passes.values, 0u);
    {
        nb::gil_scoped_release release;
        count(scene, beams, ranges, max_range_m, window_m, threads, ticker(progress), hits.values, passes.values);
    }
    return std::make_tuple(hits.column(), passes.column());
}

auto likelihood_of(Scene& scene, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
                   const AnyArray& ring, const AnyArray& sweep, std::array<double, 3> scene_origin_m,
                   const AnyArray& range_m, float min_range_m, float max_range_m, float min_sigma_m, int threads,
                   const nb::object& progress) {
    const BeamArrays beams = beam_arrays(origin_m, direction, pulse, ring, sweep, scene_origin_m);
    const auto ranges = values<float>(range_m, "range_m", static_cast<std::ptrdiff_t>(beams.size()));
    const Fresh<double> log_density(beams.size());
    {
        nb::gil_scoped_release release;
        likelihood(scene, beams, ranges, {min_range_m, max_range_m}, min_sigma_m, threads, ticker(progress),
                   log_density.values);
    }
    return log_density.column();
}

auto place_pattern(const AnyArray& pattern_origin_m, const AnyArray& pattern_direction, const AnyArray& pattern_time_ns,
                   std::int64_t n_repeats, double period_ns, std::int64_t start_ns, const AnyArray& knot_time_ns,
                   const AnyArray& knot_position_m, const AnyArray& knot_quaternion_xyzw,
                   std::array<double, 3> mount_position_m, std::array<double, 4> mount_quaternion_xyzw,
                   std::int64_t first_repeat, int threads) {
    const auto times = values<std::int64_t>(pattern_time_ns, "pattern_time_ns", -1);
    const auto n = static_cast<std::ptrdiff_t>(times.size());
    const PatternArrays pattern{values<float>(pattern_origin_m, "pattern_origin_m", n, 3),
                                values<float>(pattern_direction, "pattern_direction", n, 3), times};
    const auto knots = values<std::int64_t>(knot_time_ns, "knot_time_ns", -1);
    const auto k = static_cast<std::ptrdiff_t>(knots.size());
    if (k == 0) throw nb::value_error("knot_time_ns: is empty");
    if (n_repeats < 0) throw nb::value_error("n_repeats: is negative");
    const TrajectoryArrays trajectory{knots, values<double>(knot_position_m, "knot_position_m", k, 3),
                                      values<double>(knot_quaternion_xyzw, "knot_quaternion_xyzw", k, 4)};
    const Mount mount{
        {mount_position_m[0], mount_position_m[1], mount_position_m[2]},
        {mount_quaternion_xyzw[0], mount_quaternion_xyzw[1], mount_quaternion_xyzw[2], mount_quaternion_xyzw[3]}};
    const std::size_t total = times.size() * static_cast<std::size_t>(n_repeats);
    const Fresh<double> origin_m(total, 3);
    const Fresh<float> direction(total, 3);
    const Fresh<std::int64_t> time_ns(total);
    {
        nb::gil_scoped_release release;
        place(pattern, trajectory, mount, {start_ns, period_ns, first_repeat, n_repeats}, threads, origin_m.values,
              direction.values, time_ns.values);
    }
    return std::make_tuple(origin_m.rows3(), direction.rows3(), time_ns.column());
}

// The random numbers of the engine, for statistical tests: coins and label numbers of elements, normal numbers of
// pulses.
auto draw_coins(std::uint64_t seed, const AnyArray& pulse, const AnyArray& element) {
    const auto pulses = values<std::int64_t>(pulse, "pulse", -1);
    const auto elements = values<std::int64_t>(element, "element", static_cast<std::ptrdiff_t>(pulses.size()));
    const Fresh<float> out(pulses.size());
    for (std::size_t i = 0; i < pulses.size(); ++i) {
        const Words4 words = philox(seed, static_cast<std::uint64_t>(pulses[i]), 0, 0);
        out.values[i] = coin(words.at[0], words.at[1], static_cast<std::uint64_t>(elements[i]));
    }
    return out.column();
}

auto draw_label_numbers(std::uint64_t seed, const AnyArray& pulse, const AnyArray& element) {
    const auto pulses = values<std::int64_t>(pulse, "pulse", -1);
    const auto elements = values<std::int64_t>(element, "element", static_cast<std::ptrdiff_t>(pulses.size()));
    const Fresh<float> out(pulses.size());
    for (std::size_t i = 0; i < pulses.size(); ++i) {
        const Words4 words = philox(seed, static_cast<std::uint64_t>(pulses[i]), 0, 0);
        out.values[i] = label_number(words.at[0], static_cast<std::uint64_t>(elements[i]));
    }
    return out.column();
}

auto draw_normals(std::uint64_t seed, const AnyArray& pulse) {
    const auto pulses = values<std::int64_t>(pulse, "pulse", -1);
    const Fresh<float> first(pulses.size()), second(pulses.size());
    for (std::size_t i = 0; i < pulses.size(); ++i) {
        const Words4 words = philox(seed, static_cast<std::uint64_t>(pulses[i]), 0, 0);
        const NormalPair pair = normal_pair(words.at[2], words.at[3]);
        first.values[i] = pair.first;
        second.values[i] = pair.second;
    }
    return std::make_tuple(first.column(), second.column());
}

}  // namespace

NB_MODULE(_core, m) {
#if defined(__AVX2__) && defined(__GNUC__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        throw nb::import_error(
            "this build of hedgerow needs a processor with AVX2; build it from source with "
            "-DHEDGEROW_ARCH= for an older one");
#endif
    m.doc() = "Native engine: loops over rays, points and elements. No policy, no files, no defaults.";
    m.attr("embree_version") = RTC_VERSION_STRING;

#define BEAMS                                                                                        \
    nb::arg("origin_m").noconvert(), nb::arg("direction").noconvert(), nb::arg("pulse").noconvert(), \
        nb::arg("ring").noconvert(), nb::arg("sweep").noconvert(), nb::arg("scene_origin_m")

    nb::enum_<StopLaw>(m, "StopLaw", "How a Gaussian stops rays.")
        .value("permeability", StopLaw::permeability)
        .value("extinction", StopLaw::extinction)
        .value("depth", StopLaw::depth);

    nb::class_<Scene>(m, "Scene", "Meshes, Gaussians and placed scenes; frozen when first fired at or placed.")
        .def(nb::init<>())
        .def("add_mesh", add_mesh, nb::arg("vertices").noconvert(), nb::arg("triangles").noconvert(),
             nb::arg("permeability").noconvert(), nb::arg("label").noconvert(), nb::arg("reflectance").noconvert(),
             nb::arg("intensity_sigma").noconvert(), nb::arg("lambertian"), nb::arg("noise_group").noconvert(),
             nb::arg("noise"), nb::arg("labels").noconvert(),
             "Adds triangles; noise has (sigma0_m, sigma_a_m, min_cosine, sigma_per_m) for each group, labels is "
             "(first, label, "
             "count) of all triangles, or empty if none has several.")
        .def("add_gaussians", add_gaussians, nb::arg("mean_m").noconvert(), nb::arg("whitening").noconvert(),
             nb::arg("stop").noconvert(), nb::arg("label").noconvert(), nb::arg("intensity").noconvert(),
             nb::arg("intensity_sigma").noconvert(), nb::arg("law"), nb::arg("tau"), nb::arg("labels").noconvert(),
             "Adds Gaussians; stop is a permeability, an extinction in 1/m or a depth, labels as for add_mesh.")
        .def("place", place_scenes, nb::arg("scene"), nb::arg("transforms").noconvert(), nb::arg("label").noconvert(),
             nb::arg("first_element"),
             "Places a scene once for each (3x4 by rows, float64) transform; first_element -1 numbers through.")
        .def(
            "build", [](Scene& scene) { scene.embree(Purpose::fire); }, nb::call_guard<nb::gil_scoped_release>(),
            "Builds what firing needs now rather than at the first firing.")
        .def(
            "embree_address",
            [](Scene& scene) { return reinterpret_cast<std::uintptr_t>(scene.embree(Purpose::fire)); },
            "Address of the Embree scene that firing traces, for benchmarks.")
        .def_prop_ro("n_elements", &Scene::n_elements)
        .def_prop_ro("max_sigma_m", &Scene::max_sigma_m,
                     "No element at range r draws ranges with a larger deviation than this plus r max_sigma_per_m.")
        .def_prop_ro("max_sigma_per_m", &Scene::max_sigma_per_m)
        .def("fire", fire_beams, BEAMS, nb::arg("min_range_m"), nb::arg("max_range_m"), nb::arg("seed"),
             nb::arg("threads"), nb::arg("progress").none(),
             "First return of each pulse: (range_m, intensity, label, element, incidence_cosine).")
        .def("pierced", pierced_by, BEAMS, nb::arg("max_range_m"), nb::arg("threads"), nb::arg("progress").none(),
             "Elements along each ray, nearest first: (begin, element, mean_m, sigma_m, pass).")
        .def("count", count_beams, BEAMS, nb::arg("range_m").noconvert(), nb::arg("max_range_m"), nb::arg("window_m"),
             nb::arg("threads"), nb::arg("progress").none(), "Hits and passes of each element.")
        .def("likelihood", likelihood_of, BEAMS, nb::arg("range_m").noconvert(), nb::arg("min_range_m"),
             nb::arg("max_range_m"), nb::arg("min_sigma_m"), nb::arg("threads"), nb::arg("progress").none(),
             "Log density of each measured range.");
#undef BEAMS

    m.def("place", place_pattern, nb::arg("pattern_origin_m").noconvert(), nb::arg("pattern_direction").noconvert(),
          nb::arg("pattern_time_ns").noconvert(), nb::arg("n_repeats"), nb::arg("period_ns"), nb::arg("start_ns"),
          nb::arg("knot_time_ns").noconvert(), nb::arg("knot_position_m").noconvert(),
          nb::arg("knot_quaternion_xyzw").noconvert(), nb::arg("mount_position_m"), nb::arg("mount_quaternion_xyzw"),
          nb::arg("first_repeat"), nb::arg("threads"),
          "A scan pattern repeated along a trajectory: (origin_m, direction, time_ns).");
    bind_beam(m);
    bind_behind(m);
    bind_cluster(m);
    bind_points(m);
    bind_refine(m);
    bind_surface(m);
    m.def("embree_bytes", embree_bytes, "Bytes that Embree holds now.");
    m.def("traces_wide_packets", traces_wide_packets,
          "Whether rays through Gaussians go in packets of sixteen; HEDGEROW_LANES=8 in the environment says no.");
    m.def("draw_coins", draw_coins, nb::arg("seed"), nb::arg("pulse").noconvert(), nb::arg("element").noconvert(),
          "The engine's coin of each (pulse, element) pair, in (0, 1).");
    m.def("draw_label_numbers", draw_label_numbers, nb::arg("seed"), nb::arg("pulse").noconvert(),
          nb::arg("element").noconvert(), "The number in (0, 1) that draws the label of each (pulse, element) pair.");
    m.def("draw_normals", draw_normals, nb::arg("seed"), nb::arg("pulse").noconvert(),
          "The engine's two standard normal numbers of each pulse.");
}
