// SPDX-License-Identifier: Apache-2.0
// First return of each pulse: one closest-hit traversal with hashed coins, then the range drawn from the element.
#pragma once

#include "base/random.hpp"
#include "trace/batch.hpp"

namespace hedgerow {

struct RangeLimits {
    float min_m, max_m;
    bool contain(float range_m) const { return range_m > 0 && range_m >= min_m && range_m <= max_m; }
};

// One entry per beam; a beam without return has range inf, element -1, label 0 and NaN for the rest.
struct ReturnArrays {
    std::span<float> range_m;
    std::span<float> intensity;
    std::span<std::uint16_t> label;
    std::span<std::int64_t> element;
    std::span<float> incidence_cosine;  // NaN for a Gaussian: a volume has no surface
};

// Writes what a traced packet met, range and intensity drawn with the normal numbers of the packet. Turns the normals
// of placed triangles into the world. For both widths.
template <int N>
void write_returns(const Scene& scene, Rays<N>& rays, const Packet<N>& packet, const PacketRandom<N>& random,
                   RangeLimits limits, const ReturnArrays& out);

void fire(Scene& scene, const BeamArrays& beams, RangeLimits limits, std::uint64_t seed, int threads, const Tick& tick,
          const ReturnArrays& out);

}  // namespace hedgerow
