// SPDX-License-Identifier: Apache-2.0
// Every element along a ray, nearest first, and what follows from that: counting, likelihood.
// Equations: docs/models.md §6.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "trace/batch.hpp"
#include "trace/fire.hpp"
#include "trace/meet.hpp"

namespace hedgerow {

// The elements along each beam, as one table: those of beam i stand at begin[i] to begin[i + 1].
struct Pierced {
    std::vector<std::int64_t> begin;
    std::vector<Crossing> crossings;
};
Pierced pierced(Scene& scene, const BeamArrays& beams, float max_range_m, int threads, const Tick& tick);

// Adds to `hits` and `passes` (one entry per element) what the measured ranges say of the elements on their way.
// A triangle at t is hit if |r - t| < window, passed if r - t > window. A Gaussian is hit if the return lies in its
// tau-ellipsoid, passed if the beam goes on behind it. Elements behind the return are not counted. Of elements with
// boxes (low and high corners, 6 per element, map frame; empty: none has one), only beams that cross the box count.
void count(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, float max_range_m, float window_m,
           std::span<const double> boxes, int threads, const Tick& tick, std::span<std::uint32_t> hits,
           std::span<std::uint32_t> passes);

// Log density of each measured range (inf: of no return within the limits) under the mixture of all elements on
// the ray. `min_sigma_m` widens elements that are sharper, such as noiseless triangles, whose density has no bound.
void log_likelihood(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, RangeLimits limits,
                    float min_sigma_m, int threads, const Tick& tick, std::span<double> log_density);

// How far along a ray elements may have returned at a measured range: an element at t may if t - tail sigma(t) <= r,
// where sigma(t) is at most sigma0 + share t.
class Reach {
  public:
    Reach(const Scene& scene, float min_sigma_m)
        : tail_m_(kTail * std::max(scene.max_sigma_m(), min_sigma_m)), nearer_(1 - kTail * scene.max_sigma_per_m()) {}

    float operator()(float range_m) const {
        return nearer_ > 0 ? (range_m + tail_m_) / nearer_ : std::numeric_limits<float>::infinity();
    }

  private:
    static constexpr float kTail = 8.0f;  // a normal density is below 1e-14 of its peak beyond this many sigmas
    float tail_m_, nearer_;
};

inline double normal_density(double x, double mean, double sigma) {
    const double z = (x - mean) / sigma;
    return std::exp(-0.5 * z * z) / (sigma * std::sqrt(2 * std::numbers::pi));
}

// Probability that a normal range is nearer or farther than the sensor can tell.
inline double outside(RangeLimits limits, double mean, double sigma) {
    const auto below = [&](double z) { return 0.5 * std::erfc(-z / (sigma * std::numbers::sqrt2)); };
    return below(limits.min_m - mean) + below(mean - limits.max_m);
}

template <int N, typename Far, typename Visit>
void pierce_packets(const Scene& scene, RTCScene embree, const BeamArrays& beams, const Packets<N>& packets,
                    float max_range_m, Far&& far_m, Visit&& visit) {
    std::vector<Crossing> crossings[N];
    PacketContext<N> context(scene);
    context.crossings = crossings;
    for (float& limit : context.max_range_m.at) limit = max_range_m;
    Rays<N> rays = fresh_rays<N>();
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const Packet<N> packet = packets[i];
        Lanes<float, N> far;
        for (int lane = 0; lane < N; ++lane) {
            far[lane] = std::min(max_range_m, far_m(packet.beam[lane]));
            crossings[lane].clear();
        }
        load_rays(beams, packet, far, rays);
        for (int lane = 0; lane < N; ++lane) {
            context.direction[0][lane] = rays.ray.dir_x[lane];
            context.direction[1][lane] = rays.ray.dir_y[lane];
            context.direction[2][lane] = rays.ray.dir_z[lane];
        }
        intersect(packet.valid, embree, context, rays, note_triangles);
        for (int lane = 0; lane < packet.count; ++lane) {
            std::sort(crossings[lane].begin(), crossings[lane].end());
            visit(packet.beam[lane], std::as_const(crossings[lane]));
        }
    }
}

// Calls visit(beam, crossings) for every beam of the chunk with its elements, nearest first, up to far_m(beam).
// Triangles end there; Gaussians may stand farther off if they reach nearer.
template <typename Far, typename Visit>
void pierce_chunk(const Scene& scene, RTCScene embree, const BeamArrays& beams, Chunk chunk, float max_range_m,
                  Far&& far_m, Visit&& visit) {
    in_packets(scene, beams, chunk,
               [&](const auto& packets) { pierce_packets(scene, embree, beams, packets, max_range_m, far_m, visit); });
}

}  // namespace hedgerow
