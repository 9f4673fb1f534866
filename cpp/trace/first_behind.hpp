// SPDX-License-Identifier: Apache-2.0
// What a beam meets when it gets through things of some labels: the first element of another label behind a range.
#pragma once

#include "trace/fire.hpp"
#include "trace/meet.hpp"

namespace hedgerow {

// For each beam the first element between near_m and far_m (both included) that stops it and whose label is not among
// `passed`. The coins are those that `fire` throws with the same seed; the range is drawn with other normal numbers,
// and may lie a little outside near_m and far_m for it.
void first_behind(Scene& scene, const BeamArrays& beams, std::span<const float> near_m, std::span<const float> far_m,
                  const LabelSet& passed, std::uint64_t seed, int threads, const Tick& tick, const ReturnArrays& out);

}  // namespace hedgerow
