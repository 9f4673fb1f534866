// SPDX-License-Identifier: Apache-2.0
// The sums of one round of expectation maximisation on the ray likelihood: who answered for each measured range?
//
// With the order of the elements along each ray held fixed, the density of a measured range is a mixture
// (1 - e) sum_i w_i N(r; t_i, sigma_i^2) + e / (max - min), w_i = (1 - pass_i) prod_{j<i} pass_j. The share of element
// i in it is its responsibility g_i; it was passed with weight sum_{j>i} g_j. No return passes everything on its way.
#pragma once

#include <cstdint>
#include <span>

#include "trace/batch.hpp"
#include "trace/fire.hpp"

namespace hedgerow {

// Sums are kept in fixed point, so that they are the same in whatever order threads and partitions add them up.
constexpr double kFixed = 0x1p30;

// What one round gathers per element, in this order. u is the optical depth of an element on a ray, pass = exp(-u); the
// log of the extinction enters the likelihood through g log(1 - exp(-u)) - (passing weight) u.
enum RaySum : int {
    kHits,                   // sum of g
    kPasses,                 // sum of the weights with which rays passed it
    kSlope,                  // sum of g u / (exp(u) - 1): first derivative of the hits' part
    kCurve,                  // sum of minus its second derivative
    kDepth,                  // sum of passing weights times u: both derivatives of the passes' part, signs changed
    kPointX,                 // sum of g (p - mean), by axis
    kPointXX = kPointX + 3,  // sum of g (p - mean)(p - mean)', lower triangle by rows
    kRaySums = kPointXX + 6,
    kStopSums = kPasses + 1,  // what a permeability needs, alone
};

struct RayModel {
    RangeLimits limits;
    float min_sigma_m;    // sharper elements count as this wide
    float outlier_share;  // e, of ranges that nothing explains
};

// Adds the sums of the beams to `sums` (kRaySums per element of the scene, or the first kStopSums of these, fixed
// point) and writes the log density of each measured range, outliers included. Triangles, which have no mean, only
// gather hits and passes.
void ray_sums(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, const RayModel& settings,
              int threads, const Tick& tick, std::span<std::int64_t> sums, std::span<double> log_density);

}  // namespace hedgerow
