// SPDX-License-Identifier: Apache-2.0
// What happens when the traversal meets an element: a coin is thrown (fire), or the crossing is noted (pierce).
//
// Elements pass or stop a ray independently and the first one that stops it makes the return. The coin of each
// element can therefore be thrown when the traversal meets it, in any order, and Embree's closest-hit search
// returns the right element with the right probability.
// Equations: docs/models.md §3.
#pragma once

#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "scene/scene.hpp"

namespace hedgerow {

// One element on a ray.
struct Crossing {
    float mean_m;   // where along the ray: the plane of a triangle, the closest approach to a Gaussian
    float sigma_m;  // standard deviation of the range it returns
    float half_m;   // half the way inside the tau-ellipsoid; below 0 for a triangle
    float pass;     // probability that the ray passes it
    std::uint64_t element;
    float intensity;  // mean of what it returns; NaN if unknown

    bool is_volume() const { return half_m >= 0; }
    bool operator<(const Crossing& other) const {
        return mean_m != other.mean_m ? mean_m < other.mean_m : element < other.element;
    }
};

using LabelSet = std::bitset<1 << 16>;

// The rays of one packet; exactly one of `coins` and `crossings` is set, and says what meeting an element means.
template <int N = kLanes>
struct PacketContext : QueryContext {
    const Scene* scene;
    const PacketRandom<N>* coins = nullptr;
    const LabelSet* passed = nullptr;            // with coins: labels that stop no ray; nullptr: none
    std::vector<Crossing>* crossings = nullptr;  // one list per lane
    Lanes<float, N> max_range_m;                 // crossings beyond it are not noted
    bool ends_at_opaque = false;                 // with crossings: nothing behind an opaque triangle is wanted
    Lanes<float, N> direction[3];                // in the world; inside an instance the ray has another one
    Lanes<std::uint64_t, N> nearest;  // Gaussian that stopped the ray: of two at one range the lower number wins

    explicit PacketContext(const Scene& scene) : scene(&scene) { init_context(*this); }
};

// Embree callbacks; those of triangles for packets of eight.
void meet_gaussian(const RTCIntersectFunctionNArguments* arguments);
void meet_unfolded(const RTCIntersectFunctionNArguments* arguments);
void toss_for_triangles(const RTCFilterFunctionNArguments* arguments);
void note_triangles(const RTCFilterFunctionNArguments* arguments);
void pass_triangles(const RTCFilterFunctionNArguments* arguments);

// The cosine of the incidence angle of a world direction on a triangle whose normal, of any length, Embree gave in the
// frame of the placed scene.
inline float incidence_cosine(const Placement* placement, const float normal[3], const float direction[3]) {
    const std::array<float, 3> n =
        placement ? placement->normal_in_world(normal) : std::array{normal[0], normal[1], normal[2]};
    const float along = n[0] * direction[0] + n[1] * direction[1] + n[2] * direction[2];
    const float squared = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    return squared > 0 ? std::min(1.0f, std::fabs(along) / std::sqrt(squared)) : 1.0f;
}

}  // namespace hedgerow
