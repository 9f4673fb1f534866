// SPDX-License-Identifier: Apache-2.0
// Moments of points per voxel, gathered from beams and their ranges.
//
// Positions are summed as whole numbers: offsets from the voxel's own centre in steps of side / 2^18 (about a
// micrometre for 0.3 m, less than a float32 range can tell apart). Whole sums are exact, so it does not matter how a
// log is cut, in which order parts are merged, or how many threads there are; and large offsets such as UTM cannot
// cancel. Intensities are summed as whole numbers too (`SplitSum`).
// Equations: docs/models.md §7.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/batch.hpp"

namespace hedgerow {

struct VoxelKey {
    std::int32_t x, y, z;
    bool operator==(const VoxelKey&) const = default;
    auto operator<=>(const VoxelKey&) const = default;
};

// A sum of numbers, exact to 2^-32: their whole parts and the rest apart, each a whole number, so that the order does
// not matter, from intensities of 0 to 1 up to 16 bits. Numbers beyond 2^40 count as that.
struct SplitSum {
    std::int64_t whole = 0, rest = 0;  // rest in steps of 2^-32

    void add(double number);
    void add(const SplitSum& other);
};

constexpr double kRestSteps = 4294967296.0;  // 2^32

// The squares of 2^17 steps overflow after 2^29 points in one voxel; no log comes near.
struct VoxelSum {
    std::int64_t count = 0;
    std::array<std::int64_t, 3> first{};   // steps
    std::array<std::int64_t, 6> second{};  // steps squared: xx, xy, xz, yy, yz, zz
    std::int64_t known = 0;                // points whose intensity is known
    SplitSum intensity, intensity_squared;

    void add(const VoxelSum& other);
};

constexpr double kStepsPerSide = 1 << 18;

// Numbers keys in the order in which they are first seen.
template <typename Key, typename Hash>
class Numbering {
  public:
    std::uint32_t number(const Key& key) {
        if (2 * (keys_.size() + 1) > table_.size()) grow();
        std::size_t place = Hash{}(key) & (table_.size() - 1);
        while (table_[place] != kFree) {
            if (keys_[table_[place]] == key) return table_[place];
            place = (place + 1) & (table_.size() - 1);
        }
        table_[place] = static_cast<std::uint32_t>(keys_.size());
        keys_.push_back(key);
        return table_[place];
    }
    const std::vector<Key>& keys() const { return keys_; }

  private:
    static constexpr std::uint32_t kFree = ~0u;

    void grow() {
        table_.assign(table_.empty() ? 1024 : 2 * table_.size(), kFree);
        for (std::uint32_t i = 0; i < keys_.size(); ++i) {
            std::size_t place = Hash{}(keys_[i]) & (table_.size() - 1);
            while (table_[place] != kFree) place = (place + 1) & (table_.size() - 1);
            table_[place] = i;
        }
    }

    std::vector<std::uint32_t> table_;
    std::vector<Key> keys_;
};

struct VoxelHash {
    std::size_t operator()(const VoxelKey& key) const {
        std::uint64_t h = static_cast<std::uint32_t>(key.x) * 0x9E3779B97F4A7C15ull;
        h ^= static_cast<std::uint32_t>(key.y) * 0xC2B2AE3D27D4EB4Full;
        h ^= static_cast<std::uint32_t>(key.z) * 0x165667B19E3779F9ull;
        h ^= h >> 29;
        h *= 0xBF58476D1CE4E5B9ull;
        return static_cast<std::size_t>(h ^ (h >> 32));
    }
};

struct WordHash {
    std::size_t operator()(std::uint64_t word) const {
        word *= 0x9E3779B97F4A7C15ull;
        return static_cast<std::size_t>(word ^ (word >> 32));
    }
};

struct MeasuredArrays {
    std::span<const double> origin_m;      // 3 per beam, map frame
    std::span<const float> direction;      // 3 per beam, unit length
    std::span<const float> range_m;        // per_beam for each beam, infinite where there is no return
    std::span<const float> intensity;      // the same, or empty
    std::span<const std::uint16_t> label;  // the same, or empty
    std::size_t per_beam;

    std::size_t size() const { return direction.size() / 3; }
};

class VoxelSums {
  public:
    explicit VoxelSums(double side_m) : side_m_(side_m) {}

    // Adds all returns; voxel numbers must fit in 32 bits, which the caller has made sure of.
    void add(const MeasuredArrays& returns, int threads, const Tick& tick);
    void merge(const VoxelSums& other);
    void add_voxel(const VoxelKey& key, const VoxelSum& sum);
    void add_label(const VoxelKey& key, std::uint16_t label, std::int64_t count);

    std::size_t size() const { return sums_.size(); }
    const std::vector<VoxelKey>& keys() const { return voxels_.keys(); }
    const std::vector<VoxelSum>& sums() const { return sums_; }

    // Labels of voxels, without 0 (unlabelled): number of the voxel << 16 | label, and how many points have it.
    const std::vector<std::uint64_t>& label_keys() const { return labels_.keys(); }
    const std::vector<std::int64_t>& label_counts() const { return label_counts_; }

  private:
    void add_range(const MeasuredArrays& returns, Chunk beams);
    std::uint32_t number(const VoxelKey& key);
    void count_label(std::uint32_t voxel, std::uint16_t label, std::int64_t count);

    double side_m_;
    Numbering<VoxelKey, VoxelHash> voxels_;
    std::vector<VoxelSum> sums_;
    Numbering<std::uint64_t, WordHash> labels_;
    std::vector<std::int64_t> label_counts_;
};

}  // namespace hedgerow
