// SPDX-License-Identifier: Apache-2.0
// Scan patterns along trajectories.
#include <nanobind/stl/array.h>

#include "bind/bind.hpp"
#include "trace/place_pattern.hpp"

namespace hedgerow {
namespace {

struct PlacedPattern {
    explicit PlacedPattern(std::size_t n) : origin_m(n, 3), direction(n, 3), time_ns(n) {}

    Fresh<Rows3<double>> origin_m;
    Fresh<Rows3<float>> direction;
    Fresh<Column<std::int64_t>> time_ns;
};

PlacedPattern placed_pattern(const AnyArray& pattern_origin_m, const AnyArray& pattern_direction,
                             const AnyArray& pattern_time_ns, const AnyArray& knot_time_ns,
                             const AnyArray& knot_position_m, const AnyArray& knot_quaternion_xyzw, const Mount& mount,
                             const Repeats& repeats, int threads) {
    const auto times = values<std::int64_t>(pattern_time_ns, "pattern_time_ns", -1);
    const auto n = static_cast<std::ptrdiff_t>(times.size());
    const PatternArrays pattern{values<float>(pattern_origin_m, "pattern_origin_m", n, 3),
                                values<float>(pattern_direction, "pattern_direction", n, 3), times};
    const auto knots = values<std::int64_t>(knot_time_ns, "knot_time_ns", -1);
    const auto k = static_cast<std::ptrdiff_t>(knots.size());
    if (k == 0) throw nb::value_error("knot_time_ns: is empty");
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    if (repeats.count < 0 || repeats.count > kMost) throw nb::value_error("repeats.count: is negative, or too large");
    if (repeats.first < -kMost || repeats.first > kMost) throw nb::value_error("repeats.first: is too large");
    const TrajectoryArrays trajectory{knots, values<double>(knot_position_m, "knot_position_m", k, 3),
                                      values<double>(knot_quaternion_xyzw, "knot_quaternion_xyzw", k, 4)};
    PlacedPattern placed(times.size() * static_cast<std::size_t>(repeats.count));
    nb::gil_scoped_release release;
    place_pattern(pattern, trajectory, mount, repeats, threads, placed.origin_m.values, placed.direction.values,
                  placed.time_ns.values);
    return placed;
}

}  // namespace

void bind_pattern(nb::module_& m) {
    bind_settings(m, "Mount", "Pose of the sensor on the vehicle.", field("position_m", &Mount::position_m),
                  field("quaternion_xyzw", &Mount::quaternion_xyzw));
    bind_settings(m, "Repeats", "Which repeats of a pattern: repeat k starts at start_ns + round(k period_ns).",
                  field("start_ns", &Repeats::start_ns), field("period_ns", &Repeats::period_ns),
                  field("first", &Repeats::first), field("count", &Repeats::count));
    bind_answer(m, "PlacedPattern", "Pulses in the map frame.", field("origin_m", &PlacedPattern::origin_m),
                field("direction", &PlacedPattern::direction), field("time_ns", &PlacedPattern::time_ns));
    m.def("place_pattern", placed_pattern, nb::kw_only(), nb::arg("pattern_origin_m").noconvert(),
          nb::arg("pattern_direction").noconvert(), nb::arg("pattern_time_ns").noconvert(),
          nb::arg("knot_time_ns").noconvert(), nb::arg("knot_position_m").noconvert(),
          nb::arg("knot_quaternion_xyzw").noconvert(), nb::arg("mount"), nb::arg("repeats"), nb::arg("threads"),
          "A scan pattern repeated along a trajectory, every pulse from its own pose.");
}

}  // namespace hedgerow
