// SPDX-License-Identifier: Apache-2.0
#include "learn/voxel_sums.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/parallel.hpp"
#include "base/wrapping.hpp"

namespace hedgerow {
namespace {

constexpr std::size_t kBeamsPerChunk = 1 << 15;
constexpr std::size_t kChunksPerTick = 32;  // about a million beams

}  // namespace

void SplitSum::add(double number) {
    number = std::clamp(number, -0x1p40, 0x1p40);
    const double down = std::floor(number);
    add_to(whole, static_cast<std::int64_t>(down));
    add_to(rest, std::llround((number - down) * kRestSteps));
}

void SplitSum::add(const SplitSum& other) {
    add_to(whole, other.whole);
    add_to(rest, other.rest);
}

void VoxelSum::add(const VoxelSum& other) {
    add_to(count, other.count);
    for (int i = 0; i < 3; ++i) add_to(first[i], other.first[i]);
    for (int i = 0; i < 6; ++i) add_to(second[i], other.second[i]);
    add_to(known, other.known);
    intensity.add(other.intensity);
    intensity_squared.add(other.intensity_squared);
}

std::uint32_t VoxelSums::number(const VoxelKey& key) {
    const std::uint32_t voxel = voxels_.number(key);
    if (voxel == sums_.size()) sums_.emplace_back();
    return voxel;
}

void VoxelSums::count_label(std::uint32_t voxel, std::uint16_t label, std::int64_t count) {
    const std::uint32_t entry = labels_.number(std::uint64_t{voxel} << 16 | label);
    if (entry == label_counts_.size()) label_counts_.push_back(0);
    add_to(label_counts_[entry], count);
}

void VoxelSums::add_voxel(const VoxelKey& key, const VoxelSum& sum) { sums_[number(key)].add(sum); }

void VoxelSums::add_label(const VoxelKey& key, std::uint16_t label, std::int64_t count) {
    count_label(number(key), label, count);
}

void VoxelSums::merge(const VoxelSums& other) {
    std::vector<std::uint32_t> voxel(other.size());
    for (std::size_t i = 0; i < other.size(); ++i) {
        voxel[i] = number(other.keys()[i]);
        sums_[voxel[i]].add(other.sums_[i]);
    }
    for (std::size_t i = 0; i < other.label_counts_.size(); ++i) {
        const std::uint64_t key = other.label_keys()[i];
        count_label(voxel[key >> 16], static_cast<std::uint16_t>(key), other.label_counts_[i]);
    }
}

void VoxelSums::add_range(const MeasuredArrays& returns, Chunk beams) {
    const double step_m = side_m_ / kStepsPerSide;
    for (std::size_t entry = beams.begin * returns.per_beam; entry < beams.end * returns.per_beam; ++entry) {
        const double range_m = returns.range_m[entry];
        if (!std::isfinite(range_m)) continue;
        const std::size_t beam = entry / returns.per_beam;
        std::int32_t cell[3];
        std::int64_t offset[3];
        for (int axis = 0; axis < 3; ++axis) {
            const double at_m = returns.origin_m[3 * beam + axis] + range_m * returns.direction[3 * beam + axis];
            const double number = std::floor(at_m / side_m_);
            if (!(std::abs(number) < 2147483647.0))
                throw std::invalid_argument("a point lies too far from the map's zero");
            cell[axis] = static_cast<std::int32_t>(number);
            offset[axis] = std::llround((at_m - (number + 0.5) * side_m_) / step_m);
        }
        const std::uint32_t voxel = number({cell[0], cell[1], cell[2]});
        VoxelSum& sum = sums_[voxel];
        ++sum.count;
        for (int i = 0, k = 0; i < 3; ++i) {
            sum.first[i] += offset[i];
            for (int j = i; j < 3; ++j) sum.second[k++] += offset[i] * offset[j];
        }
        if (!returns.intensity.empty() && !std::isnan(returns.intensity[entry])) {
            const double intensity = returns.intensity[entry];
            ++sum.known;
            sum.intensity.add(intensity);
            sum.intensity_squared.add(intensity * intensity);
        }
        if (!returns.label.empty() && returns.label[entry] != 0) count_label(voxel, returns.label[entry], 1);
    }
}

void VoxelSums::add(const MeasuredArrays& returns, int threads, const Tick& tick) {
    Threads arena(threads);
    const std::size_t n_chunks = (returns.size() + kBeamsPerChunk - 1) / kBeamsPerChunk;
    for (std::size_t first = 0; first < n_chunks; first += kChunksPerTick) {
        const std::size_t last = std::min(first + kChunksPerTick, n_chunks);
        std::vector<VoxelSums> parts(last - first, VoxelSums(side_m_));
        arena.execute([&] {
            tbb::parallel_for(first, last, [&](std::size_t i) {
                const std::size_t begin = i * kBeamsPerChunk;
                parts[i - first].add_range(returns, {begin, std::min(begin + kBeamsPerChunk, returns.size())});
            });
        });
        for (const VoxelSums& part : parts) merge(part);
        tick(std::min(last * kBeamsPerChunk, returns.size()));
    }
}

}  // namespace hedgerow
