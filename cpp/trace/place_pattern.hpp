// SPDX-License-Identifier: Apache-2.0
// A sensor's scan pattern, repeated along a trajectory: every pulse at its own time from its own pose.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hedgerow {

struct PatternArrays {
    std::span<const float> origin_m;   // 3 per pulse, sensor frame
    std::span<const float> direction;  // 3 per pulse, unit length
    std::span<const std::int64_t> time_ns;
    std::size_t size() const { return time_ns.size(); }
};

struct TrajectoryArrays {
    std::span<const std::int64_t> time_ns;    // strictly increasing
    std::span<const double> position_m;       // 3 each
    std::span<const double> quaternion_xyzw;  // 4 each, unit length
};

struct Mount {
    std::array<double, 3> position_m;
    std::array<double, 4> quaternion_xyzw;
};

struct Repeats {
    std::int64_t start_ns;
    double period_ns;
    std::int64_t first, count;
};

// Pulse i of repeat k fires at start + round((first + k) * period) + time[i]; all times must lie in the trajectory.
void place_pattern(const PatternArrays& pattern, const TrajectoryArrays& trajectory, const Mount& mount,
                   const Repeats& repeats, int threads, std::span<double> origin_m, std::span<float> direction,
                   std::span<std::int64_t> time_ns);

}  // namespace hedgerow
