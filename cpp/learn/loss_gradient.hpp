// SPDX-License-Identifier: Apache-2.0
// The loss of a simulation and its gradient by the elements: what refines them.
//
// Along a ray, in order, element i stops it with weight w_i = (1 - pass_i) prod_{j<i} pass_j and then returns a normal
// range. A measured range r scores
//     -log((1 - e) sum_i w_i N(r; t_i, sigma_i^2) + e / (max - min)) + a sum_i w_i E|range_i - r| + b P(no return),
// a missing one -log((1 - e) P(no return) + e) + c P(return). Every term is linear in the w_i but for the logarithm, so
// one sweep from the far end to the near end gives all derivatives.
// Equations: docs/models.md §14.
#pragma once

#include <cstdint>
#include <span>

#include "learn/ray_sums.hpp"

namespace hedgerow {

// What is gathered per element, in fixed point as in ray_sums.hpp. A step changes an element of covariance A A' and
// mean m to A exp(S) A' and m + A v, its extinction by a factor exp(s): gradients by v, S and s have no unit, whatever
// the size of the element.
enum LossSum : int {
    kSlopeMean,                    // by v, three
    kSlopeShape = kSlopeMean + 3,  // by S, lower triangle by rows; those off the diagonal once
    kSlopeStop = kSlopeShape + 6,  // by s
    kShare,                        // sum of responsibilities for returns
    kLossSums,
};

struct LossWeights {
    float error_nat_per_m;  // a
    float lost_hit_nat;     // b
    float false_hit_nat;    // c
};

// Adds the sums of the beams to `sums` and writes three numbers per beam: log density of the measured range (outliers
// included), probability that it returns, expected error of the range.
void loss_gradient(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, const RayModel& model,
                   const LossWeights& weights, int threads, const Tick& tick, std::span<std::int64_t> sums,
                   std::span<double> scores);

}  // namespace hedgerow
