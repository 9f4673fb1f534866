// SPDX-License-Identifier: Apache-2.0
// How likely a measured range is for a pulse with width: a mixture over its sub-rays.
//
// Each sub-ray stands for its share of the light. Elements that answer pulses are crossed by the axis and count for all
// sub-rays alike; the others are crossed by each sub-ray on its own. A pulse has no return if neither its axis nor any
// of its sub-rays has one. Where nothing answers sub-rays, this is the likelihood of the axis (trace/pierce.hpp).
// Equations: docs/models.md §32.
#pragma once

#include "pulse/sub_rays.hpp"
#include "trace/fire.hpp"

namespace hedgerow {

// Log density of the first return of each pulse (inf: of no return within the limits).
void pulse_log_likelihood(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, const Spot& spot,
                          RangeLimits limits, float min_sigma_m, int threads, const Tick& tick,
                          std::span<double> log_density);

}  // namespace hedgerow
