// SPDX-License-Identifier: Apache-2.0
#include "cluster.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "random.hpp"

namespace hedgerow {
namespace {

constexpr std::size_t kChunk = 8192;     // points that are summed together; the sums are added in order
constexpr std::size_t kLarge = 1 << 16;  // clusters above this share their points among threads, others are shared out
constexpr std::size_t kTick = 1 << 19;   // points between ticks
constexpr std::size_t kBlock = 128;      // points whose distances are held at once
constexpr float kNowhere = 1e18f;        // where a mean without points is: its square is still finite

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

// The 21 low bits of x, each followed by two zeros.
std::uint64_t spread21(std::uint64_t x) {
    x = (x | x << 32) & 0x001f00000000ffffull;
    x = (x | x << 16) & 0x001f0000ff0000ffull;
    x = (x | x << 8) & 0x100f00f00f00f00full;
    x = (x | x << 4) & 0x10c30c30c30c30c3ull;
    return (x | x << 2) & 0x1249249249249249ull;
}

struct Box {
    std::array<double, 3> low, high;
    double width() const { return std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]}); }
};

Box box_of(std::span<const double> points) {
    Box box{{points[0], points[1], points[2]}, {points[0], points[1], points[2]}};
    for (std::size_t i = 0; i < points.size(); ++i) {
        box.low[i % 3] = std::min(box.low[i % 3], points[i]);
        box.high[i % 3] = std::max(box.high[i % 3], points[i]);
    }
    return box;
}

// Along the Morton curve; ties by position, so that only equal points depend on the order of the input.
std::vector<std::uint32_t> morton_order(std::span<const double> points, const Box& box) {
    const std::size_t n = points.size() / 3;
    const double scale = box.width() > 0 ? 2097151.0 / box.width() : 0.0;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed(n);
    tbb::parallel_for(std::size_t{0}, n, [&](std::size_t i) {
        std::uint64_t key = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const auto cell = static_cast<std::uint64_t>((points[3 * i + axis] - box.low[axis]) * scale);
            key |= spread21(cell) << axis;
        }
        keyed[i] = {key, static_cast<std::uint32_t>(i)};
    });
    tbb::parallel_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
        if (a.first != b.first) return a.first < b.first;
        const double* p = &points[3 * std::size_t{a.second}];
        const double* q = &points[3 * std::size_t{b.second}];
        for (int axis = 0; axis < 3; ++axis)
            if (p[axis] != q[axis]) return p[axis] < q[axis];
        return a.second < b.second;
    });
    std::vector<std::uint32_t> order(n);
    std::ranges::transform(keyed, order.begin(), [](const auto& pair) { return pair.second; });
    return order;
}

// float32 about the middle of the box: a hundred metres keep a hundredth of a millimetre.
Cloud load(std::span<const double> points) {
    Cloud cloud(points.size() / 3);
    if (points.empty()) return cloud;
    const Box box = box_of(points);
    cloud.order = morton_order(points, box);
    const auto middle = [&](int axis) { return 0.5 * (box.low[axis] + box.high[axis]); };
    tbb::parallel_for(std::size_t{0}, cloud.order.size(), [&](std::size_t i) {
        const double* p = &points[3 * std::size_t{cloud.order[i]}];
        cloud.x[i] = static_cast<float>(p[0] - middle(0));
        cloud.y[i] = static_cast<float>(p[1] - middle(1));
        cloud.z[i] = static_cast<float>(p[2] - middle(2));
    });
    return cloud;
}

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

// The number of the nearest mean of up to kBlock points.
void nearest(const float* x, const float* y, const float* z, std::size_t n, const Means& means, int k_end,
             std::int32_t* which) {
    float best[kBlock];
    std::fill_n(best, n, std::numeric_limits<float>::max());
    std::fill_n(which, n, 0);
    for (int k = 0; k < k_end; ++k) {
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

class Splitter {
  public:
    Splitter(Cloud& cloud, const ClusterSettings& settings) : cloud_(cloud), settings_(settings) {}

    // Splits a node by K-means and puts its points in the order of the clusters; returns the clusters that have points.
    std::vector<Node> split(const Node& node, bool parallel) {
        double least = std::numeric_limits<double>::infinity();
        for (int restart = 0; restart < settings_.restarts; ++restart) {
            const double variation = run(node, restart, parallel);
            if (variation >= least) continue;
            least = variation;
            std::copy(cloud_.of.begin() + node.begin, cloud_.of.begin() + node.end,
                      cloud_.best_of.begin() + node.begin);
        }
        return regroup(node);
    }

  private:
    // One start of K-means: leaves the clusters in `of` and returns the variation within them, less a constant.
    double run(const Node& node, int restart, bool parallel) {
        Sums sums{};
        Means means = settings_.partition_start ? random_partition(node, restart, parallel, sums)
                                                : random_points(node, restart, parallel, sums);
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

    Means random_points(const Node& node, int restart, bool parallel, Sums& sums) {
        start_from(node, parallel, sums, [](std::size_t) { return std::uint8_t{0}; });
        Means means;
        for (int k = 0; k < settings_.clusters; ++k) {
            const Words4 words = philox(settings_.seed, node.path, static_cast<std::uint32_t>(restart), 1u << 31 | k);
            const std::uint64_t word = std::uint64_t{words.at[0]} << 32 | words.at[1];
            const std::size_t point = node.begin + word % node.size();
            means.x[k] = cloud_.x[point], means.y[k] = cloud_.y[point], means.z[k] = cloud_.z[point];
        }
        return means;
    }

    Means random_partition(const Node& node, int restart, bool parallel, Sums& sums) {
        const auto clusters = static_cast<std::uint32_t>(settings_.clusters);
        start_from(node, parallel, sums, [&](std::size_t i) {
            const auto quad = static_cast<std::uint32_t>((i - node.begin) / 4);
            const Words4 words = philox(settings_.seed, node.path, quad, static_cast<std::uint32_t>(restart));
            return static_cast<std::uint8_t>(words.at[(i - node.begin) % 4] % clusters);
        });
        return means_of(sums);
    }

    // Sets the cluster of each point, and the sums and the total variation (about the node's mean) that follow.
    template <typename ClusterOf>
    void start_from(const Node& node, bool parallel, Sums& sums, const ClusterOf& cluster_of) {
        std::vector<Sums> parts((node.size() + kChunk - 1) / kChunk);
        std::vector<double> squares(parts.size());
        for_chunks_of(node, parallel, [&](std::size_t begin, std::size_t end, std::size_t part) {
            for (std::size_t i = begin; i < end; ++i) {
                cloud_.of[i] = cluster_of(i);
                const double x = cloud_.x[i], y = cloud_.y[i], z = cloud_.z[i];
                parts[part][cloud_.of[i]].add({x, y, z, 1});
                squares[part] += x * x + y * y + z * z;
            }
        });
        for (const Sums& part : parts)
            for (int k = 0; k < settings_.clusters; ++k) sums[k].add(part[k]);
        total_ = std::accumulate(squares.begin(), squares.end(), 0.0);
    }

    // Moves every point to its nearest mean; only what changes is moved between the sums.
    bool reassign(const Node& node, const Means& means, bool parallel, Sums& sums) {
        std::vector<Sums> parts((node.size() + kChunk - 1) / kChunk);
        std::vector<std::uint8_t> changed(parts.size());
        for_chunks_of(node, parallel, [&](std::size_t begin, std::size_t end, std::size_t part) {
            std::int32_t which[kBlock];
            for (std::size_t block = begin; block < end; block += kBlock) {
                const std::size_t n = std::min(kBlock, end - block);
                nearest(&cloud_.x[block], &cloud_.y[block], &cloud_.z[block], n, means, settings_.clusters, which);
                for (std::size_t i = 0; i < n; ++i) {
                    const std::uint8_t before = cloud_.of[block + i];
                    if (before == which[i]) continue;
                    const Sum moved{cloud_.x[block + i], cloud_.y[block + i], cloud_.z[block + i], 1};
                    parts[part][before].add(moved, -1);
                    parts[part][which[i]].add(moved);
                    cloud_.of[block + i] = static_cast<std::uint8_t>(which[i]);
                    changed[part] = 1;
                }
            }
        });
        for (const Sums& part : parts)
            for (int k = 0; k < settings_.clusters; ++k) sums[k].add(part[k]);
        return std::ranges::any_of(changed, [](std::uint8_t c) { return c != 0; });
    }

    // A cluster that has lost all its points is dropped: its mean goes where no point is near.
    Means means_of(const Sums& sums) const {
        Means means;
        for (int k = 0; k < settings_.clusters; ++k) {
            const auto mean = [&](double sum) {
                return sums[k].count ? static_cast<float>(sum / static_cast<double>(sums[k].count)) : kNowhere;
            };
            means.x[k] = mean(sums[k].x), means.y[k] = mean(sums[k].y), means.z[k] = mean(sums[k].z);
        }
        return means;
    }

    double between_of(const Sums& sums) const {
        double between = 0;
        for (int k = 0; k < settings_.clusters; ++k) {
            const Sum& s = sums[k];
            if (s.count) between += (s.x * s.x + s.y * s.y + s.z * s.z) / static_cast<double>(s.count);
        }
        return between;
    }

    // Sorts the node's points by cluster, keeping their order within each.
    std::vector<Node> regroup(const Node& node) {
        const std::uint8_t* of = &cloud_.best_of[node.begin];
        std::array<std::size_t, kMaxClusters + 1> next{};
        for (std::size_t i = 0; i < node.size(); ++i) ++next[of[i] + 1];
        std::partial_sum(next.begin(), next.end(), next.begin());
        std::vector<Node> children;
        for (int k = 0; k < settings_.clusters; ++k) {
            if (next[k] == next[k + 1]) continue;
            const Words4 words = philox(settings_.seed, node.path, static_cast<std::uint32_t>(k), 1u << 30);
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

    template <typename T>
    static void move(std::vector<T>& column, const Node& node, const std::vector<std::uint32_t>& to) {
        std::vector<T> moved(node.size());
        for (std::size_t i = 0; i < node.size(); ++i) moved[to[i]] = column[node.begin + i];
        std::ranges::copy(moved, column.begin() + node.begin);
    }

    Cloud& cloud_;
    const ClusterSettings& settings_;
    double total_ = 0;  // of the node that is being split
};

// All leaves below a node, by one thread. Points that all lie in one place cannot be split, however many they are.
void leaves_below(Cloud& cloud, const ClusterSettings& settings, const Node& top, std::vector<std::size_t>& begin) {
    Splitter splitter(cloud, settings);
    std::vector<Node> open{top};
    while (!open.empty()) {
        const Node node = open.back();
        open.pop_back();
        std::vector<Node> children;
        if (node.size() >= settings.split_points) children = splitter.split(node, false);
        if (children.size() < 2)
            begin.push_back(node.begin);
        else
            open.insert(open.end(), children.begin(), children.end());
    }
}

// Splits the large clusters one after the other; returns the small ones that are left and the large that stay whole.
std::vector<Node> split_large(Cloud& cloud, const ClusterSettings& settings, const Tick& tick) {
    Splitter splitter(cloud, settings);
    std::vector<Node> open{{0, cloud.order.size(), settings.root}}, small;
    while (!open.empty()) {
        const Node node = open.back();
        open.pop_back();
        if (node.size() < kLarge || node.size() < settings.split_points) {
            small.push_back(node);
            continue;
        }
        std::vector<Node> children = splitter.split(node, true);
        if (children.size() < 2)
            small.push_back(node);
        else
            open.insert(open.end(), children.begin(), children.end());
        tick(0);
    }
    std::ranges::sort(small, {}, &Node::begin);
    return small;
}

}  // namespace

Clusters cluster(std::span<const double> points, const ClusterSettings& settings, const Tick& tick) {
    std::optional<tbb::global_control> limit;
    if (settings.threads > 0) limit.emplace(tbb::global_control::max_allowed_parallelism, settings.threads);
    tbb::task_arena arena(settings.threads > 0 ? settings.threads : tbb::task_arena::automatic);
    Cloud cloud(0);
    arena.execute([&] { cloud = load(points); });
    Clusters found;
    if (cloud.order.empty()) return {{}, {0}};
    std::vector<Node> small;
    arena.execute([&] { small = split_large(cloud, settings, tick); });
    std::vector<std::vector<std::size_t>> begins(small.size());
    for (std::size_t first = 0, last = 0; first < small.size(); first = last) {
        while (last < small.size() && small[last].begin < small[first].begin + kTick) ++last;
        arena.execute([&] {
            tbb::parallel_for(first, last, [&](std::size_t i) { leaves_below(cloud, settings, small[i], begins[i]); });
        });
        tick(small[last - 1].end);
    }
    for (std::vector<std::size_t>& part : begins) {
        std::ranges::sort(part);
        found.begin.insert(found.begin.end(), part.begin(), part.end());
    }
    found.begin.push_back(cloud.order.size());
    found.order = std::move(cloud.order);
    return found;
}

}  // namespace hedgerow
