// SPDX-License-Identifier: Apache-2.0
#include "learn/surface.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "learn/cubes.hpp"
#include "learn/nearby.hpp"
#include "learn/rimls.hpp"

namespace hedgerow {
namespace {

constexpr std::size_t kBlocksPerPiece = 64;

// Nodes in blocks of side by side by side, one block per cell of the grid of points: what a node needs is in the 27
// cells around its own.
class Nodes {
  public:
    Nodes(const CellGrid& grid, const SurfacePoints& points, const SurfaceSettings& settings, int side)
        : grid_(grid), points_(points), settings_(settings), side_(side), keys_(grid.reached()) {
        std::erase_if(keys_, [&](CellKey key) { return !wanted(grid.place(key)); });
        nodes_.resize(keys_.size() * block_size());
        for_pieces(keys_.size(), kBlocksPerPiece,
                   [&](std::size_t, std::size_t begin, std::size_t end) { evaluate(begin, end); });
    }

    const std::vector<CellKey>& keys() const { return keys_; }
    int side() const { return side_; }

    // The block's nodes and the first layer of the next blocks: (side + 1)^3 values, x fastest; NaN where there is
    // none.
    void with_next(std::size_t block, std::vector<GridNode>& values) const {
        const int wide = side_ + 1;
        values.assign(static_cast<std::size_t>(wide * wide * wide), GridNode{});
        for (int d = 0; d < 8; ++d) {
            const int dx = d & 1, dy = d >> 1 & 1, dz = d >> 2;
            const CellKey key = CellGrid::moved(keys_[block], dx, dy, dz);
            const auto found = std::lower_bound(keys_.begin() + static_cast<std::ptrdiff_t>(block), keys_.end(), key);
            if (found == keys_.end() || *found != key) continue;
            const GridNode* from = &nodes_[static_cast<std::size_t>(found - keys_.begin()) * block_size()];
            for (int z = 0; z < (dz ? 1 : side_); ++z)
                for (int y = 0; y < (dy ? 1 : side_); ++y)
                    for (int x = 0; x < (dx ? 1 : side_); ++x)
                        values[static_cast<std::size_t>(((z + dz * side_) * wide + y + dy * side_) * wide + x +
                                                        dx * side_)] = from[(z * side_ + y) * side_ + x];
        }
    }

  private:
    std::size_t block_size() const { return static_cast<std::size_t>(side_ * side_ * side_); }

    // Whether any node of the block is the corner of a cube in the wanted part.
    bool wanted(const std::array<std::int64_t, 3>& place) const {
        const auto& [x0, x1, y0, y1] = settings_.cubes;
        const std::int64_t x = place[0] * side_, y = place[1] * side_;
        return x <= x1 && x + side_ > x0 && y <= y1 && y + side_ > y0;
    }

    void evaluate(std::size_t begin, std::size_t end) {
        Rimls rimls;
        Nearby nearby;
        CellGrid::Walk walk(grid_, keys_[begin]);
        for (std::size_t block = begin; block < end; ++block) {
            nearby.load(grid_, keys_[block], walk.around(keys_[block]), points_.position_m, points_.weight);
            GridNode* node = &nodes_[block * block_size()];
            const float step = static_cast<float>(settings_.node_m), first = -step * static_cast<float>(side_) / 2;
            for (int z = 0; z < side_; ++z)
                for (int y = 0; y < side_; ++y)
                    for (int x = 0; x < side_; ++x) {
                        const float at[3] = {first + step * static_cast<float>(x), first + step * static_cast<float>(y),
                                             first + step * static_cast<float>(z)};
                        *node++ = rimls.node(nearby, at, points_, settings_);
                    }
        }
    }

    const CellGrid& grid_;
    const SurfacePoints& points_;
    const SurfaceSettings& settings_;
    int side_;
    std::vector<CellKey> keys_;
    std::vector<GridNode> nodes_;
};

// What the points near a triangle say about it.
class Finisher {
  public:
    // Adds the triangle to the mesh unless no point is near enough.
    void add(const double corners[9], Nearby& nearby, const SurfacePoints& points, const SurfaceSettings& settings,
             SurfaceMesh& mesh) {
        float at[3];
        for (int axis = 0; axis < 3; ++axis)
            at[axis] =
                static_cast<float>((corners[axis] + corners[3 + axis] + corners[6 + axis]) / 3 - nearby.centre()[axis]);
        const auto near = nearby.within(at, settings.max_gap_m);
        if (near.empty()) return;
        std::int64_t n = 0;
        double sum = 0, squares = 0;
        labels_.clear();
        for (const std::uint32_t i : near) {
            const ThinnedPoint& point = points.thinned[nearby.number[i]];
            n += point.n_intensity;
            sum += point.intensity;
            squares += point.intensity_squared;
            vote(point);
        }
        const double mean = sum / static_cast<double>(n);
        mesh.corners_m.insert(mesh.corners_m.end(), corners, corners + 9);
        mesh.intensity.push_back(n ? static_cast<float>(mean) : std::numeric_limits<float>::quiet_NaN());
        mesh.intensity_sigma.push_back(
            n ? static_cast<float>(std::sqrt(std::max(0.0, squares / static_cast<double>(n) - mean * mean))) : 0.0f);
        std::ranges::sort(labels_, {}, &Votes::label);
        mesh.n_labels.push_back(std::ssize(labels_));
        for (const Votes& votes : labels_) {
            mesh.label.push_back(votes.label);
            mesh.label_count.push_back(votes.count);
        }
    }

  private:
    struct Votes {
        std::uint16_t label;
        std::int64_t count;
    };

    void vote(const ThinnedPoint& point) {
        if (point.label == 0) return;  // unlabelled
        const auto found = std::ranges::find(labels_, point.label, &Votes::label);
        if (found != labels_.end())
            found->count += point.count;
        else
            labels_.push_back({point.label, point.count});
    }

    std::vector<Votes> labels_;
};

struct Marcher {
    const CellGrid& grid;
    const SurfacePoints& points;
    const SurfaceSettings& settings;
    const Nodes& nodes;

    void march(std::size_t begin, std::size_t end, SurfaceMesh& mesh) const {
        std::vector<GridNode> values;
        std::vector<double> found;  // corners of the block's triangles
        Nearby nearby;
        Finisher finisher;
        CellGrid::Walk walk(grid, nodes.keys()[begin]);
        for (std::size_t block = begin; block < end; ++block) {
            const CellKey key = nodes.keys()[block];
            nodes.with_next(block, values);
            found.clear();
            march_block(grid.place(key), values, found);
            if (found.empty()) continue;
            nearby.load(grid, key, walk.around(key), points.position_m, points.weight);
            for (std::size_t i = 0; i < found.size(); i += 9) finisher.add(&found[i], nearby, points, settings, mesh);
        }
    }

  private:
    void march_block(const std::array<std::int64_t, 3>& place, const std::vector<GridNode>& values,
                     std::vector<double>& found) const {
        const auto& [x0, x1, y0, y1] = settings.cubes;
        const int side = nodes.side(), wide = side + 1;
        for (int z = 0; z < side; ++z)
            for (int y = 0; y < side; ++y)
                for (int x = 0; x < side; ++x) {
                    const std::array<std::int64_t, 3> node{place[0] * side + x, place[1] * side + y,
                                                           place[2] * side + z};
                    if (node[0] < x0 || node[0] >= x1 || node[1] < y0 || node[1] >= y1) continue;
                    float corner[8];
                    unsigned inside = 0, n_close = 0;
                    bool complete = true;
                    for (int c = 0; c < 8; ++c) {
                        const int at = ((z + (c >> 2)) * wide + y + (c >> 1 & 1)) * wide + x + (c & 1);
                        corner[c] = values[static_cast<std::size_t>(at)].value;
                        n_close += values[static_cast<std::size_t>(at)].close;
                        complete = complete && !std::isnan(corner[c]);
                        inside |= (corner[c] < 0 ? 1u : 0u) << c;
                    }
                    if (complete && n_close >= settings.min_close && inside != 0 && inside != 255)
                        march_cube(node, corner, inside, found);
                }
    }

    void march_cube(const std::array<std::int64_t, 3>& node, const float corner[8], unsigned inside,
                    std::vector<double>& found) const {
        const Cubes& cubes = Cubes::table();
        for (const auto& triangle : cubes.triangles(inside)) {
            double p[9];
            for (int i = 0; i < 3; ++i) {
                const CubeEdge edge = cubes.edge(triangle[static_cast<std::size_t>(i)]);
                const double from = corner[edge.from], to = corner[edge.from | 1 << edge.axis];
                for (int axis = 0; axis < 3; ++axis) {
                    const double along = static_cast<double>(node[axis] + (edge.from >> axis & 1));
                    p[3 * i + axis] = (axis == edge.axis ? along + from / (from - to) : along) * settings.node_m;
                }
            }
            if (has_area(p)) found.insert(found.end(), p, p + 9);
        }
    }

    // A surface through a node gives triangles without size there.
    bool has_area(const double p[9]) const {
        double a[3], b[3];
        for (int i = 0; i < 3; ++i) a[i] = p[3 + i] - p[i], b[i] = p[6 + i] - p[i];
        const double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
        const double least = 1e-6 * settings.node_m * settings.node_m;
        return x * x + y * y + z * z > least * least;
    }
};

void append(SurfaceMesh& to, const SurfaceMesh& from) {
    to.corners_m.insert(to.corners_m.end(), from.corners_m.begin(), from.corners_m.end());
    to.intensity.insert(to.intensity.end(), from.intensity.begin(), from.intensity.end());
    to.intensity_sigma.insert(to.intensity_sigma.end(), from.intensity_sigma.begin(), from.intensity_sigma.end());
    to.n_labels.insert(to.n_labels.end(), from.n_labels.begin(), from.n_labels.end());
    to.label.insert(to.label.end(), from.label.begin(), from.label.end());
    to.label_count.insert(to.label_count.end(), from.label_count.begin(), from.label_count.end());
}

}  // namespace

SurfaceMesh make_surface(const SurfacePoints& points, const SurfaceSettings& settings, int threads) {
    SurfaceMesh mesh;
    on_threads(threads, [&] {
        const double reach = std::max({settings.reach_m, settings.kernel_m, settings.max_gap_m});
        const int side = std::max(1, static_cast<int>(std::ceil(reach / settings.node_m - 1e-6)));
        const CellGrid grid(points.position_m, side * settings.node_m);
        const Nodes nodes(grid, points, settings, side);
        std::vector<SurfaceMesh> parts((nodes.keys().size() + kBlocksPerPiece - 1) / kBlocksPerPiece);
        const Marcher marcher{grid, points, settings, nodes};
        for_pieces(nodes.keys().size(), kBlocksPerPiece, [&](std::size_t piece, std::size_t begin, std::size_t end) {
            marcher.march(begin, end, parts[piece]);
        });
        for (const SurfaceMesh& part : parts) append(mesh, part);
    });
    return mesh;
}

}  // namespace hedgerow
