// SPDX-License-Identifier: Apache-2.0
#include "learn/kmeans.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "base/random.hpp"
#include "learn/cluster_shape.hpp"

namespace hedgerow {
namespace {

constexpr std::size_t kChunk = 8192;  // points that are summed together; the sums are added in order
constexpr std::size_t kBlock = 32;    // points that are compared together; divides kChunk
constexpr float kNowhere = 1e18f;     // where a mean without points is: its square is still finite

// Streams of random numbers, beside those of random partitions, which are numbered by their restart.
constexpr std::uint32_t kPathStream = 1u << 30, kPointStream = 1u << 31;

// Runs work(chunk begin, chunk end, chunk number) over the node; chunks are the same with and without threads.
template <typename Work>
void for_chunks_of(const Node& node, bool parallel, const Work& work) {
    const std::size_t n_chunks = (node.size() + kChunk - 1) / kChunk;
    const auto run = [&](std::size_t i) {
        const std::size_t begin = node.begin + i * kChunk;
        work(begin, std::min(begin + kChunk, node.end), i);
    };
    if (parallel) {
        tbb::parallel_for(std::size_t{0}, n_chunks, run);
    } else {
        for (std::size_t i = 0; i < n_chunks; ++i) run(i);
    }
}

Block block_of(const Cloud& cloud, std::size_t begin, std::size_t end) {
    const auto middle = [&](const std::vector<float>& column) {
        const auto [low, high] = std::minmax_element(column.begin() + begin, column.begin() + end);
        return 0.5f * (*low + *high);
    };
    Block block{middle(cloud.x), middle(cloud.y), middle(cloud.z), 0, kMixed};
    float squared = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const float dx = cloud.x[i] - block.x, dy = cloud.y[i] - block.y, dz = cloud.z[i] - block.z;
        squared = std::max(squared, dx * dx + dy * dy + dz * dz);
    }
    block.radius = std::sqrt(squared);
    return block;
}

// The means that can be the nearest of any point of a block, in their order; returns how many.
int candidates(const Block& block, const Means& means, int n_means, std::array<int, kMaxClusters>& which) {
    std::array<float, kMaxClusters> distance;
#pragma omp simd
    for (int k = 0; k < n_means; ++k) {
        const float dx = means.x[k] - block.x, dy = means.y[k] - block.y, dz = means.z[k] - block.z;
        distance[k] = std::sqrt(dx * dx + dy * dy + dz * dz);
    }
    // A little more than the diameter: rounding must not drop the nearest.
    const float reach =
        *std::min_element(distance.begin(), distance.begin() + n_means) * 1.00001f + 2.0001f * block.radius;
    int n = 0;
    for (int k = 0; k < n_means; ++k)
        if (distance[k] <= reach) which[n++] = k;
    return n;
}

// The nearest of some means for up to kBlock points.
void nearest(const float* x, const float* y, const float* z, std::size_t n, const Means& means,
             std::span<const int> among, std::int32_t* which) {
    float best[kBlock];
    std::fill_n(best, n, std::numeric_limits<float>::max());
    std::fill_n(which, n, among[0]);
    for (const int k : among) {
        const float mx = means.x[k], my = means.y[k], mz = means.z[k];
#pragma omp simd
        for (std::size_t i = 0; i < n; ++i) {
            const float dx = x[i] - mx, dy = y[i] - my, dz = z[i] - mz;
            const float squared = dx * dx + dy * dy + dz * dz;
            const bool nearer = squared < best[i];
            best[i] = nearer ? squared : best[i];
            which[i] = nearer ? k : which[i];
        }
    }
}

template <typename T>
void move(std::vector<T>& column, const Node& node, const std::vector<std::uint32_t>& to) {
    std::vector<T> moved(node.size());
    for (std::size_t i = 0; i < node.size(); ++i) moved[to[i]] = column[node.begin + i];
    std::ranges::copy(moved, column.begin() + node.begin);
}

}  // namespace

std::vector<Node> Splitter::split(const Node& node, bool parallel) {
    bound(node, parallel);
    double least = std::numeric_limits<double>::infinity();
    const int restarts = settings_.start == ClusterStart::axis ? 1 : settings_.restarts;  // the axis is always the same
    for (int restart = 0; restart < restarts; ++restart) {
        const double variation = run(node, restart, parallel);
        if (variation >= least) continue;
        least = variation;
        std::copy(cloud_.of.begin() + node.begin, cloud_.of.begin() + node.end, cloud_.best_of.begin() + node.begin);
    }
    return regroup(node);
}

void Splitter::bound(const Node& node, bool parallel) {
    blocks_.resize((node.size() + kBlock - 1) / kBlock);
    for_chunks_of(node, parallel, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t at = begin; at < end; at += kBlock)
            blocks_[(at - node.begin) / kBlock] = block_of(cloud_, at, std::min(at + kBlock, end));
    });
}

double Splitter::run(const Node& node, int restart, bool parallel) {
    Sums sums{};
    Means means = first_means(node, restart, parallel, sums);
    double between = 0;
    for (int i = 0; i < settings_.iterations; ++i) {
        const bool changed = reassign(node, means, parallel, sums);
        means = means_of(sums);
        // Total variation is that within clusters plus that between them; what is between only grows.
        const double now = between_of(sums);
        const bool settled = i > 0 && now - between <= settings_.tolerance * (total_ - now);
        between = now;
        if (!changed || settled) break;
    }
    return total_ - between;
}

Means Splitter::first_means(const Node& node, int restart, bool parallel, Sums& sums) {
    switch (settings_.start) {
        case ClusterStart::points:
            return random_points(node, restart, parallel, sums);
        case ClusterStart::axis:
            return along_axis(node, parallel, sums);
        default:
            return random_partition(node, restart, parallel, sums);
    }
}

Means Splitter::along_axis(const Node& node, bool parallel, Sums& sums) {
    start_from(node, parallel, sums, [](std::size_t) { return std::uint8_t{0}; });
    const ClusterShape shape = shape_of(cloud_, node);
    const Vector3 axis = longest_axis(shape.covariance);
    Means means;
    for (int k = 0; k < settings_.clusters; ++k) {
        const double share = 2.0 * k / (settings_.clusters - 1) - 1;  // evenly from -1 to 1
        means.x[k] = static_cast<float>(shape.mean[0] + share * axis[0]);
        means.y[k] = static_cast<float>(shape.mean[1] + share * axis[1]);
        means.z[k] = static_cast<float>(shape.mean[2] + share * axis[2]);
    }
    return means;
}

Means Splitter::random_points(const Node& node, int restart, bool parallel, Sums& sums) {
    start_from(node, parallel, sums, [](std::size_t) { return std::uint8_t{0}; });
    Means means;
    for (int k = 0; k < settings_.clusters; ++k) {
        const Words4 words = philox(settings_.seed, node.path, static_cast<std::uint32_t>(restart),
                                    kPointStream | static_cast<std::uint32_t>(k));
        const std::uint64_t word = std::uint64_t{words.at[0]} << 32 | words.at[1];
        const std::size_t point = node.begin + word % node.size();
        means.x[k] = cloud_.x[point], means.y[k] = cloud_.y[point], means.z[k] = cloud_.z[point];
    }
    return means;
}

Means Splitter::random_partition(const Node& node, int restart, bool parallel, Sums& sums) {
    const auto clusters = static_cast<std::uint32_t>(settings_.clusters);
    start_from(node, parallel, sums, [&](std::size_t i) {
        const auto quad = static_cast<std::uint32_t>((i - node.begin) / 4);
        const Words4 words = philox(settings_.seed, node.path, quad, static_cast<std::uint32_t>(restart));
        return static_cast<std::uint8_t>(words.at[(i - node.begin) % 4] % clusters);
    });
    return means_of(sums);
}

template <typename ClusterOf>
void Splitter::start_from(const Node& node, bool parallel, Sums& sums, const ClusterOf& cluster_of) {
    std::vector<Sums> parts((node.size() + kChunk - 1) / kChunk);
    std::vector<double> squares(parts.size());
    for_chunks_of(node, parallel, [&](std::size_t begin, std::size_t end, std::size_t part) {
        for (std::size_t i = begin; i < end; ++i) {
            cloud_.of[i] = cluster_of(i);
            const double x = cloud_.x[i], y = cloud_.y[i], z = cloud_.z[i];
            parts[part][cloud_.of[i]].add({x, y, z, 1});
            squares[part] += x * x + y * y + z * z;
        }
        for (std::size_t at = begin; at < end; at += kBlock) blocks_[(at - node.begin) / kBlock].of = kMixed;
    });
    for (const Sums& part : parts)
        for (int k = 0; k < settings_.clusters; ++k) sums[k].add(part[k]);
    total_ = std::accumulate(squares.begin(), squares.end(), 0.0);
}

bool Splitter::reassign(const Node& node, const Means& means, bool parallel, Sums& sums) {
    std::vector<Sums> parts((node.size() + kChunk - 1) / kChunk);
    std::vector<std::uint8_t> changed(parts.size());
    for_chunks_of(node, parallel, [&](std::size_t begin, std::size_t end, std::size_t part) {
        for (std::size_t at = begin; at < end; at += kBlock)
            if (reassign_block(node, at, std::min(at + kBlock, end), means, parts[part])) changed[part] = 1;
    });
    for (const Sums& part : parts)
        for (int k = 0; k < settings_.clusters; ++k) sums[k].add(part[k]);
    return std::ranges::any_of(changed, [](std::uint8_t c) { return c != 0; });
}

// Points of a block are close together, so most blocks have one candidate, which they are with already.
bool Splitter::reassign_block(const Node& node, std::size_t begin, std::size_t end, const Means& means, Sums& sums) {
    Block& block = blocks_[(begin - node.begin) / kBlock];
    std::array<int, kMaxClusters> among;
    const int n_among = candidates(block, means, settings_.clusters, among);
    if (n_among == 1 && block.of == among[0]) return false;
    std::int32_t which[kBlock];
    const std::span<const int> chosen(among.data(), static_cast<std::size_t>(n_among));
    nearest(&cloud_.x[begin], &cloud_.y[begin], &cloud_.z[begin], end - begin, means, chosen, which);
    bool changed = false;
    for (std::size_t i = begin; i < end; ++i) {
        const std::uint8_t before = cloud_.of[i], now = static_cast<std::uint8_t>(which[i - begin]);
        if (before == now) continue;
        const Sum moved{cloud_.x[i], cloud_.y[i], cloud_.z[i], 1};
        sums[before].add(moved, -1);
        sums[now].add(moved);
        cloud_.of[i] = now;
        changed = true;
    }
    block.of = n_among == 1 ? among[0] : kMixed;
    return changed;
}

// A cluster that has lost all its points is dropped: its mean goes where no point is near.
Means Splitter::means_of(const Sums& sums) const {
    Means means;
    for (int k = 0; k < settings_.clusters; ++k) {
        const auto mean = [&](double sum) {
            return sums[k].count ? static_cast<float>(sum / static_cast<double>(sums[k].count)) : kNowhere;
        };
        means.x[k] = mean(sums[k].x), means.y[k] = mean(sums[k].y), means.z[k] = mean(sums[k].z);
    }
    return means;
}

double Splitter::between_of(const Sums& sums) const {
    double between = 0;
    for (int k = 0; k < settings_.clusters; ++k) {
        const Sum& s = sums[k];
        if (s.count) between += (s.x * s.x + s.y * s.y + s.z * s.z) / static_cast<double>(s.count);
    }
    return between;
}

std::vector<Node> Splitter::regroup(const Node& node) {
    const std::uint8_t* of = &cloud_.best_of[node.begin];
    std::array<std::size_t, kMaxClusters + 1> next{};
    for (std::size_t i = 0; i < node.size(); ++i) ++next[of[i] + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::vector<Node> children;
    for (int k = 0; k < settings_.clusters; ++k) {
        if (next[k] == next[k + 1]) continue;
        const Words4 words = philox(settings_.seed, node.path, static_cast<std::uint32_t>(k), kPathStream);
        const std::uint64_t path = std::uint64_t{words.at[0]} << 32 | words.at[1];
        children.push_back({node.begin + next[k], node.begin + next[k + 1], path});
    }
    if (children.size() < 2) return children;
    std::vector<std::uint32_t> to(node.size());
    for (std::size_t i = 0; i < node.size(); ++i) to[i] = static_cast<std::uint32_t>(next[of[i]]++);
    move(cloud_.x, node, to);
    move(cloud_.y, node, to);
    move(cloud_.z, node, to);
    move(cloud_.order, node, to);
    return children;
}

}  // namespace hedgerow
