// SPDX-License-Identifier: Apache-2.0
// The module hedgerow._core: topics add their parts from files of their own; here is what concerns all of them.
#include <nanobind/stl/tuple.h>

#include "base/parallel.hpp"
#include "base/random.hpp"
#include "bind/bind.hpp"

using namespace hedgerow;

namespace {

// The random numbers of the engine, for statistical tests: coins and label numbers of elements, normal numbers of
// pulses.
auto draw_coins(std::uint64_t seed, const AnyArray& pulse, const AnyArray& element) {
    const auto pulses = values<std::int64_t>(pulse, "pulse", -1);
    const auto elements = values<std::int64_t>(element, "element", static_cast<std::ptrdiff_t>(pulses.size()));
    const Fresh<Column<float>> out(pulses.size());
    for (std::size_t i = 0; i < pulses.size(); ++i) {
        const Words4 words = philox(seed, static_cast<std::uint64_t>(pulses[i]), 0, 0);
        out.values[i] = coin(words.at[0], words.at[1], static_cast<std::uint64_t>(elements[i]));
    }
    return out.get();
}

auto draw_label_numbers(std::uint64_t seed, const AnyArray& pulse, const AnyArray& element) {
    const auto pulses = values<std::int64_t>(pulse, "pulse", -1);
    const auto elements = values<std::int64_t>(element, "element", static_cast<std::ptrdiff_t>(pulses.size()));
    const Fresh<Column<float>> out(pulses.size());
    for (std::size_t i = 0; i < pulses.size(); ++i) {
        const Words4 words = philox(seed, static_cast<std::uint64_t>(pulses[i]), 0, 0);
        out.values[i] = label_number(words.at[0], static_cast<std::uint64_t>(elements[i]));
    }
    return out.get();
}

auto draw_normals(std::uint64_t seed, const AnyArray& pulse) {
    const auto pulses = values<std::int64_t>(pulse, "pulse", -1);
    const Fresh<Column<float>> first(pulses.size()), second(pulses.size());
    for (std::size_t i = 0; i < pulses.size(); ++i) {
        const Words4 words = philox(seed, static_cast<std::uint64_t>(pulses[i]), 0, 0);
        const NormalPair pair = normal_pair(words.at[2], words.at[3]);
        first.values[i] = pair.first;
        second.values[i] = pair.second;
    }
    return std::make_tuple(first.get(), second.get());
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
    threads_of_process();
    m.attr("embree_version") = RTC_VERSION_STRING;

    nb::class_<Scene> scene = bind_scene(m);
    bind_trace(m, scene);
    bind_points(m);
    bind_pattern(m);
    bind_pulses(m);
    bind_cluster(m);
    bind_refined(m);
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
