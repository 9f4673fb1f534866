// SPDX-License-Identifier: Apache-2.0
// Points summed up over fine voxels: what a surface or a classifier needs to know of many points in one place.
//
// A thinned point is mergeable statistics. Positions and directions are summed in whole numbers, so the sums are the
// same whatever the order and however the points were divided.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hedgerow {

constexpr double kThinUnit = 1 << 20;  // steps per voxel, and per unit of direction

struct ThinnedPoint {
    std::int64_t count;
    std::int64_t offset[3];  // sum of positions within the voxel [voxel / kThinUnit]
    std::int64_t toward[3];  // sum of unit vectors to the sensor [1 / kThinUnit]
    std::int64_t n_intensity;
    double intensity, intensity_squared;  // sums
    std::int32_t voxel[3];                // along x, y, z
    std::uint16_t label;                  // points of different labels are different thinned points
    std::uint16_t spare;
};
static_assert(sizeof(ThinnedPoint) == 96);

struct PointsToThin {
    std::span<const double> position_m;  // 3 per point
    std::span<const float> toward;       // 3 per point: to the sensor, unit length
    std::span<const float> intensity;    // NaN: unknown
    std::span<const std::uint16_t> label;
};

// Thinned points ordered by voxel (z, y, x) and label; `thinned_of` tells where each point went. Throws
// std::invalid_argument if positions span more than two million voxels or lie outside the range of 32 bits.
std::vector<ThinnedPoint> thin(const PointsToThin& points, double voxel_m, int threads,
                               std::span<std::uint32_t> thinned_of);

// Adds up thinned points of one voxel and label; the result is ordered.
std::vector<ThinnedPoint> merge_thinned(std::span<const ThinnedPoint> thinned, int threads);

}  // namespace hedgerow
