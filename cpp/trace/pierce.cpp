// SPDX-License-Identifier: Apache-2.0
#include "trace/pierce.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace hedgerow {
namespace {

enum class Outcome { neither, hit, pass };

Outcome classify(const Crossing& crossing, float range_m, float window_m) {
    const float beyond_m = range_m - crossing.mean_m;
    const float reach_m = crossing.is_volume() ? crossing.half_m : window_m;
    if (std::abs(beyond_m) < reach_m) return Outcome::hit;
    return beyond_m >= reach_m ? Outcome::pass : Outcome::neither;
}

// Whether the ray of a beam comes through a box.
bool crosses(const BeamArrays& beams, std::size_t beam, const double* box) {
    double enters = 0, leaves = std::numeric_limits<double>::infinity();
    for (int axis = 0; axis < 3; ++axis) {
        const double direction = beams.direction[3 * beam + axis], origin = beams.origin_m[3 * beam + axis];
        const double a = (box[axis] - origin) / direction, b = (box[3 + axis] - origin) / direction;
        // NaN, of a ray that runs within a face, narrows nothing.
        enters = std::fmax(enters, std::fmin(a, b));
        leaves = std::fmin(leaves, std::fmax(a, b));
    }
    return enters <= leaves;
}

double log_density(const std::vector<Crossing>& crossings, float range_m, RangeLimits limits, float min_sigma_m) {
    const bool returned = std::isfinite(range_m);
    double reaching = 1;  // probability that the ray gets this far
    double sum = 0;
    for (const Crossing& crossing : crossings) {
        const double weight = reaching * (1.0 - crossing.pass);
        const double sigma = std::max(crossing.sigma_m, min_sigma_m);
        if (returned) {
            sum += weight * normal_density(range_m, crossing.mean_m, sigma);
        } else {
            sum += weight * outside(limits, crossing.mean_m, sigma);
        }
        reaching *= crossing.pass;
    }
    return std::log(returned ? sum : sum + reaching);
}

}  // namespace

Pierced pierced(Scene& scene, const BeamArrays& beams, float max_range_m, int threads, const Tick& tick) {
    // Lists per beam while the threads work, one table at the end.
    std::vector<std::vector<Crossing>> lists(beams.size());
    const RTCScene embree = scene.embree(Purpose::pierce);
    for_chunks(beams, threads, tick, [&](Chunk chunk) {
        pierce_chunk(
            scene, embree, beams, chunk, max_range_m, [&](std::size_t) { return max_range_m; },
            [&](std::size_t beam, const std::vector<Crossing>& crossings) { lists[beam] = crossings; });
    });
    Pierced out;
    out.begin.reserve(beams.size() + 1);
    out.begin.push_back(0);
    for (const auto& list : lists) out.begin.push_back(out.begin.back() + static_cast<std::int64_t>(list.size()));
    out.crossings.reserve(static_cast<std::size_t>(out.begin.back()));
    for (const auto& list : lists) out.crossings.insert(out.crossings.end(), list.begin(), list.end());
    return out;
}

void count(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, float max_range_m, float window_m,
           std::span<const double> boxes, int threads, const Tick& tick, std::span<std::uint32_t> hits,
           std::span<std::uint32_t> passes) {
    const auto add_one = [](std::uint32_t& counter) {
        std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
    };
    const RTCScene embree = scene.embree(Purpose::pierce);
    for_chunks(beams, threads, tick, [&](Chunk chunk) {
        pierce_chunk(
            scene, embree, beams, chunk, max_range_m, [&](std::size_t beam) { return range_m[beam] + window_m; },
            [&](std::size_t beam, const std::vector<Crossing>& crossings) {
                for (const Crossing& crossing : crossings) {
                    if (!boxes.empty() && !crosses(beams, beam, &boxes[6 * crossing.element])) continue;
                    const Outcome outcome = classify(crossing, range_m[beam], window_m);
                    if (outcome == Outcome::hit) add_one(hits[crossing.element]);
                    if (outcome == Outcome::pass) add_one(passes[crossing.element]);
                }
            });
    });
}

void log_likelihood(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, RangeLimits limits,
                    float min_sigma_m, int threads, const Tick& tick, std::span<double> log_density_out) {
    const Reach reach(scene, min_sigma_m);
    const RTCScene embree = scene.embree(Purpose::pierce);
    for_chunks(beams, threads, tick, [&](Chunk chunk) {
        pierce_chunk(
            scene, embree, beams, chunk, limits.max_m, [&](std::size_t beam) { return reach(range_m[beam]); },
            [&](std::size_t beam, const std::vector<Crossing>& crossings) {
                log_density_out[beam] = log_density(crossings, range_m[beam], limits, min_sigma_m);
            });
    });
}

}  // namespace hedgerow
