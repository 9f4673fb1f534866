// SPDX-License-Identifier: Apache-2.0
// A triangle mesh through points with normals: robust implicit moving least squares (Oztireli et al. 2009) on the nodes
// of a sparse grid, then marching cubes. Only blocks of nodes near points exist.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/thin.hpp"

namespace hedgerow {

// Cubes of the grid by their lowest node; ends excluded.
struct CubeRange {
    std::int64_t x_begin, x_end, y_begin, y_end;
};

struct SurfaceSettings {
    double node_m;   // spacing of the nodes; the grid is anchored at the map's zero
    float kernel_m;  // points within it define the surface at a node
    float reach_m;   // where those are too few, points within this do
    std::uint32_t min_neighbours;
    std::uint32_t min_close;  // of the eight nodes of a cube, so many must have enough points within the kernel
    float sigma_residual_m;   // how far off the surface a point may lie before it loses weight
    float sigma_normal;       // how far its normal may differ before it loses weight
    int rounds;               // of reweighting
    float max_gap_m;          // triangles farther than this from any point are dropped
    CubeRange cubes;          // only these give triangles
};

struct SurfacePoints {
    std::span<const double> position_m;  // 3 per thinned point
    std::span<const float> normal;       // 3 per thinned point
    std::span<const float> weight;       // how much each counts
    std::span<const ThinnedPoint> thinned;
};

struct SurfaceMesh {
    std::vector<double> corners_m;                  // 9 per triangle, anticlockwise seen from where the sensor was
    std::vector<float> intensity, intensity_sigma;  // of the points nearby; NaN and 0 if unknown
    std::vector<std::int64_t> n_labels;             // per triangle: how many of the following are its own
    std::vector<std::uint16_t> label;               // of the labelled points nearby, ascending within a triangle
    std::vector<std::int64_t> label_count;          // how many points have it
};

SurfaceMesh make_surface(const SurfacePoints& points, const SurfaceSettings& settings, int threads);

}  // namespace hedgerow
