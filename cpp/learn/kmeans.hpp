// SPDX-License-Identifier: Apache-2.0
// One step of the top-down clustering: K-means over the points of a node, which are then sorted by cluster.
//
// The points of a node lie along a Morton curve, so that 32 in a row are close together. A block of them needs to be
// compared only with the means that can be nearest to any of them, mostly one, and mostly the one that it is with
// already. The result is the same as if every point were compared with every mean.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "learn/cluster.hpp"

namespace hedgerow {

struct Node {
    std::size_t begin, end;
    std::uint64_t path;
    std::size_t size() const { return end - begin; }
};

// Points in structure-of-arrays form, reordered as clusters are split; every node owns a range of all of these.
struct Cloud {
    std::vector<float> x, y, z;
    std::vector<std::uint32_t> order;
    std::vector<std::uint8_t> of, best_of;  // cluster of each point, now and in the best start so far

    explicit Cloud(std::size_t n) : x(n), y(n), z(n), order(n), of(n), best_of(n) {}
};

struct Sum {
    double x = 0, y = 0, z = 0;
    std::int64_t count = 0;
    void add(const Sum& other, int sign = 1) {
        x += sign * other.x;
        y += sign * other.y;
        z += sign * other.z;
        count += sign * other.count;
    }
};
using Sums = std::array<Sum, kMaxClusters>;

struct Means {
    std::array<float, kMaxClusters> x, y, z;
};

// Neighbouring points, all within radius of the centre, with the cluster they are in if it is one for all.
struct Block {
    float x, y, z, radius;
    int of;
};
constexpr int kMixed = -1;

// Splits nodes of a cloud; one for each thread, for it remembers things about the node at hand.
class Splitter {
  public:
    Splitter(Cloud& cloud, const ClusterSettings& settings) : cloud_(cloud), settings_(settings) {}

    // Splits a node and puts its points in the order of the clusters; returns the clusters that have points.
    std::vector<Node> split(const Node& node, bool parallel);

  private:
    // One start of K-means: leaves the clusters in `of` and returns the variation within them.
    double run(const Node& node, int restart, bool parallel);
    void bound(const Node& node, bool parallel);
    Means random_points(const Node& node, int restart, bool parallel, Sums& sums);
    Means random_partition(const Node& node, int restart, bool parallel, Sums& sums);
    Means along_axis(const Node& node, bool parallel, Sums& sums);
    Means first_means(const Node& node, int restart, bool parallel, Sums& sums);

    // Sets the cluster of each point, and the sums and the total variation that follow.
    template <typename ClusterOf>
    void start_from(const Node& node, bool parallel, Sums& sums, const ClusterOf& cluster_of);

    // Moves every point to its nearest mean; only what changes is moved between the sums.
    bool reassign(const Node& node, const Means& means, bool parallel, Sums& sums);
    bool reassign_block(const Node& node, std::size_t begin, std::size_t end, const Means& means, Sums& sums);
    Means means_of(const Sums& sums) const;
    double between_of(const Sums& sums) const;

    // Sorts the node's points by cluster, keeping their order within each.
    std::vector<Node> regroup(const Node& node);

    Cloud& cloud_;
    const ClusterSettings& settings_;
    // Of the node that is being split.
    std::vector<Block> blocks_;
    double total_ = 0;
};

}  // namespace hedgerow
