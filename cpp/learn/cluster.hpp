// SPDX-License-Identifier: Apache-2.0
// Top-down clustering of points: K-means, again within each cluster, until clusters are small (Browning 2012 §3.3.3,
// after Kalaiah and Varshney, 2005).
//
// Points are first put into an order of their own (along a Morton curve), and random numbers are keyed by the path from
// the root to a cluster. So the clusters depend neither on the order of the input nor on the number of threads.
// Equations: docs/models.md §8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/batch.hpp"

namespace hedgerow {

// The first means: those of a random partition, randomly chosen points, or along the longest axis, one standard
// deviation to either side.
enum class ClusterStart : int { partition, points, axis };

// How far the moments of a cluster may be from those of a Gaussian for it to stay whole; 0 splits all.
struct GaussianLimits {
    double skewness;  // of n / 6 times the sum of squared third moments, chi-square with 10 degrees of freedom
    double kurtosis;  // of the fourth moment, in standard deviations
};

struct ClusterSettings {
    int clusters;              // K, from 2 to kMaxClusters
    std::size_t split_points;  // a cluster is split if it has at least this many points
    int restarts;              // starts of K-means; the one with the least variation within clusters is kept
    int iterations;            // at most this many for each start
    double tolerance;          // stop when the variation falls by less than this share
    ClusterStart start;
    double max_skewness, max_kurtosis;  // see GaussianLimits
    std::uint64_t seed;
    std::uint64_t root;  // names the root, so that several trees with one seed differ

    GaussianLimits gaussian() const { return {max_skewness, max_kurtosis}; }
};

constexpr int kMaxClusters = 64;

// The leaves: the points of leaf i are order[begin[i]] to order[begin[i + 1] - 1]; begin has one entry more.
struct Clusters {
    std::vector<std::uint32_t> order;
    std::vector<std::size_t> begin;
};

// Points are 3 per point, finite, fewer than 2^32 of them; ticks with the number of points that are done.
Clusters cluster(std::span<const double> points, const ClusterSettings& settings, int threads, const Tick& tick);

}  // namespace hedgerow
