// SPDX-License-Identifier: Apache-2.0
#include "learn/thin.hpp"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/parallel.hpp"

namespace hedgerow {
namespace {

constexpr std::size_t kPiece = 16384;
constexpr int kBits = 21;

using Voxel = std::array<std::int32_t, 3>;

struct Keyed {
    std::uint64_t voxel;
    std::uint32_t label, index;
    bool operator<(const Keyed& other) const {
        return voxel != other.voxel   ? voxel < other.voxel
               : label != other.label ? label < other.label
                                      : index < other.index;
    }
};

Voxel voxel_of(const double* position_m, double voxel_m) {
    Voxel voxel;
    for (int axis = 0; axis < 3; ++axis) {
        const double at = std::floor(position_m[axis] / voxel_m);
        if (!(std::abs(at) < 2147483647.0)) throw std::invalid_argument("a point lies too far from the map's zero");
        voxel[axis] = static_cast<std::int32_t>(at);
    }
    return voxel;
}

// Things sorted by voxel and label, those of one kind in their given order.
template <typename VoxelOf, typename LabelOf>
std::vector<Keyed> sorted_by_voxel(std::size_t n, VoxelOf&& voxel_at, LabelOf&& label_at) {
    if (n >= std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("too many points at once");
    std::vector<Voxel> voxels(n);
    for_pieces(n, kPiece, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) voxels[i] = voxel_at(i);
    });
    Voxel low{}, high{};
    if (n > 0) low = high = voxels[0];
    for (const Voxel& voxel : voxels)
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = std::min(low[axis], voxel[axis]);
            high[axis] = std::max(high[axis], voxel[axis]);
        }
    for (int axis = 0; axis < 3; ++axis)
        if (std::int64_t{high[axis]} - low[axis] >= 1 << kBits) throw std::invalid_argument("points lie too far apart");
    std::vector<Keyed> keyed(n);
    for_pieces(n, kPiece, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::uint64_t key = 0;
            for (int axis = 2; axis >= 0; --axis)
                key = key << kBits | static_cast<std::uint64_t>(std::int64_t{voxels[i][axis]} - low[axis]);
            keyed[i] = {key, label_at(i), static_cast<std::uint32_t>(i)};
        }
    });
    tbb::parallel_sort(keyed.begin(), keyed.end());
    return keyed;
}

// Where each run of equal voxel and label begins, and the end.
std::vector<std::size_t> runs_of(const std::vector<Keyed>& keyed) {
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i < keyed.size(); ++i)
        if (i == 0 || keyed[i].voxel != keyed[i - 1].voxel || keyed[i].label != keyed[i - 1].label) starts.push_back(i);
    starts.push_back(keyed.size());
    return starts;
}

void add_point(ThinnedPoint& point, const PointsToThin& points, std::size_t i, double voxel_m) {
    ++point.count;
    for (int axis = 0; axis < 3; ++axis) {
        const double within = points.position_m[3 * i + axis] / voxel_m - point.voxel[axis];
        point.offset[axis] += std::llround(within * kThinUnit);
        point.toward[axis] += std::llround(points.toward[3 * i + axis] * kThinUnit);
    }
    const double intensity = points.intensity[i];
    if (std::isnan(intensity)) return;
    ++point.n_intensity;
    point.intensity += intensity;
    point.intensity_squared += intensity * intensity;
}

void add_thinned(ThinnedPoint& point, const ThinnedPoint& other) {
    point.count += other.count;
    for (int axis = 0; axis < 3; ++axis) {
        point.offset[axis] += other.offset[axis];
        point.toward[axis] += other.toward[axis];
    }
    point.n_intensity += other.n_intensity;
    point.intensity += other.intensity;
    point.intensity_squared += other.intensity_squared;
}

}  // namespace

std::vector<ThinnedPoint> thin(const PointsToThin& points, double voxel_m, int threads,
                               std::span<std::uint32_t> thinned_of) {
    std::vector<ThinnedPoint> thinned;
    on_threads(threads, [&] {
        const auto voxel_at = [&](std::size_t i) { return voxel_of(&points.position_m[3 * i], voxel_m); };
        const std::vector<Keyed> keyed = sorted_by_voxel(points.label.size(), voxel_at,
                                                         [&](std::size_t i) { return std::uint32_t{points.label[i]}; });
        const std::vector<std::size_t> starts = runs_of(keyed);
        thinned.resize(starts.size() - 1);
        for_pieces(thinned.size(), kPiece, [&](std::size_t, std::size_t begin, std::size_t end) {
            for (std::size_t g = begin; g < end; ++g) {
                const Voxel voxel = voxel_at(keyed[starts[g]].index);
                ThinnedPoint& point = thinned[g] = {};
                std::ranges::copy(voxel, point.voxel);
                point.label = static_cast<std::uint16_t>(keyed[starts[g]].label);
                for (std::size_t i = starts[g]; i < starts[g + 1]; ++i) {
                    add_point(point, points, keyed[i].index, voxel_m);
                    thinned_of[keyed[i].index] = static_cast<std::uint32_t>(g);
                }
            }
        });
    });
    return thinned;
}

std::vector<ThinnedPoint> merge_thinned(std::span<const ThinnedPoint> thinned, int threads) {
    std::vector<ThinnedPoint> merged;
    on_threads(threads, [&] {
        const auto voxel_at = [&](std::size_t i) { return std::to_array(thinned[i].voxel); };
        const std::vector<Keyed> keyed =
            sorted_by_voxel(thinned.size(), voxel_at, [&](std::size_t i) { return std::uint32_t{thinned[i].label}; });
        const std::vector<std::size_t> starts = runs_of(keyed);
        merged.resize(starts.size() - 1);
        for_pieces(merged.size(), kPiece, [&](std::size_t, std::size_t begin, std::size_t end) {
            for (std::size_t g = begin; g < end; ++g) {
                merged[g] = thinned[keyed[starts[g]].index];
                for (std::size_t i = starts[g] + 1; i < starts[g + 1]; ++i)
                    add_thinned(merged[g], thinned[keyed[i].index]);
            }
        });
    });
    return merged;
}

}  // namespace hedgerow
