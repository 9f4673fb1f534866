// SPDX-License-Identifier: Apache-2.0
#include "learn/cluster.hpp"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/parallel.hpp"
#include "learn/cluster_shape.hpp"
#include "learn/kmeans.hpp"

namespace hedgerow {
namespace {

constexpr std::size_t kLarge = 1 << 16;  // larger clusters share their points among threads, others are shared out
constexpr std::size_t kTick = 1 << 19;   // points between ticks

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

bool stays_whole(const Cloud& cloud, const Node& node, const ClusterSettings& settings) {
    return node.size() < settings.split_points || looks_gaussian(cloud, node, settings.gaussian());
}

// All leaves below a node, by one thread. Points that all lie in one place cannot be split, however many they are.
void leaves_below(Cloud& cloud, const ClusterSettings& settings, const Node& top, std::vector<std::size_t>& begin) {
    Splitter splitter(cloud, settings);
    std::vector<Node> open{top};
    while (!open.empty()) {
        const Node node = open.back();
        open.pop_back();
        std::vector<Node> children;
        if (!stays_whole(cloud, node, settings)) children = splitter.split(node, false);
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
        if (node.size() < kLarge || stays_whole(cloud, node, settings)) {
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

Clusters cluster(std::span<const double> points, const ClusterSettings& settings, int threads, const Tick& tick) {
    Threads arena(threads);
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
