// SPDX-License-Identifier: Apache-2.0
#include "learn/ray_sums.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "trace/pierce.hpp"

namespace hedgerow {
namespace {

constexpr double kNothing = 1e-6;     // smaller shares are not worth the memory traffic
constexpr double kOpaque = 50;        // nothing passes more than this depth
constexpr float kLeastPass = 2e-22f;  // exp(-kOpaque)

void add(std::int64_t& sum, double value) {
    std::atomic_ref(sum).fetch_add(std::llround(value * kFixed), std::memory_order_relaxed);
}

double depth_of(const Crossing& crossing) {
    return std::min(kOpaque, -std::log(std::max<double>(crossing.pass, kLeastPass)));
}

// What a Gaussian learns of itself, besides how often it stops rays, from having returned one with weight g.
void add_shape(const Crossing& crossing, double share, const double point[3], const Volume& volume,
               std::int64_t* sums) {
    if (!crossing.is_volume()) return;
    const double u = depth_of(crossing);
    const double slope = u > 1e-9 ? u / std::expm1(u) : 1;
    // With f = log(1 - exp(-u)), u = exp(theta): f' = u / (exp(u) - 1), f'' = f' (1 - u - f').
    add(sums[kSlope], share * slope);
    add(sums[kCurve], share * slope * (u + slope - 1));
    double offset[3];
    for (int axis = 0; axis < 3; ++axis) {
        offset[axis] = point[axis] - volume.gaussian->mean[axis];
        add(sums[kPointX + axis], share * offset[axis]);
    }
    int entry = kPointXX;
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column <= row; ++column) add(sums[entry++], share * offset[row] * offset[column]);
}

// The shares of the elements on one ray in its measured range, and the log density of that range.
class Shares {
  public:
    explicit Shares(const RayModel& settings) : settings_(settings) {}

    double weigh(const std::vector<Crossing>& crossings, float range_m) {
        const bool returned = std::isfinite(range_m);
        share_.assign(crossings.size(), 0.0);
        double reaching = 1, sum = 0;
        for (std::size_t i = 0; i < crossings.size(); ++i) {
            const double weight = reaching * (1.0 - crossings[i].pass);
            const double sigma = std::max(crossings[i].sigma_m, settings_.min_sigma_m);
            const double mean_m = crossings[i].mean_m;
            share_[i] =
                weight * (returned ? normal_density(range_m, mean_m, sigma) : outside(settings_.limits, mean_m, sigma));
            sum += share_[i];
            reaching *= crossings[i].pass;
        }
        // An outlier is uniform over the ranges, and a beam that should have returned may be lost.
        const double e = settings_.outlier_share;
        const double outlier = returned ? e / (settings_.limits.max_m - settings_.limits.min_m) : e;
        const double total = sum + (returned ? 0 : reaching) + outlier / (1 - e);
        beyond_ = returned ? 0 : reaching / total;
        for (double& share : share_) share /= total;
        return std::log((1 - e) * total);
    }

    double share(std::size_t i) const { return share_[i]; }
    // Weight of having gone on behind all elements.
    double beyond() const { return beyond_; }

  private:
    const RayModel& settings_;
    std::vector<double> share_;
    double beyond_ = 0;
};

}  // namespace

void ray_sums(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, const RayModel& settings,
              int threads, const Tick& tick, std::span<std::int64_t> sums, std::span<double> log_density) {
    const Reach reach(scene, settings.min_sigma_m);
    const RTCScene embree = scene.embree(Purpose::pierce);
    const std::vector<Volume> volumes = scene.volumes();
    const std::size_t width = sums.size() / std::max<std::size_t>(scene.n_elements(), 1);
    const bool stops_alone = width == kStopSums;
    for_chunks(beams, threads, tick, [&](Chunk chunk) {
        Shares shares(settings);
        pierce_chunk(
            scene, embree, beams, chunk, settings.limits.max_m, [&](std::size_t beam) { return reach(range_m[beam]); },
            [&](std::size_t beam, const std::vector<Crossing>& crossings) {
                log_density[beam] = shares.weigh(crossings, range_m[beam]);
                double point[3] = {};
                if (std::isfinite(range_m[beam]))
                    for (int axis = 0; axis < 3; ++axis)
                        point[axis] = beams.origin_m[3 * beam + axis] - beams.scene_origin_m[axis] +
                                      static_cast<double>(range_m[beam]) * beams.direction[3 * beam + axis];
                double behind = shares.beyond();
                for (std::size_t i = crossings.size(); i-- > 0;) {
                    const std::uint64_t element = crossings[i].element;
                    std::int64_t* own = &sums[width * element];
                    if (behind > kNothing) {
                        add(own[kPasses], behind);
                        if (!stops_alone && crossings[i].is_volume()) add(own[kDepth], behind * depth_of(crossings[i]));
                    }
                    const double share = shares.share(i);
                    if (share > kNothing && std::isfinite(range_m[beam])) {
                        add(own[kHits], share);
                        if (!stops_alone) add_shape(crossings[i], share, point, volumes[element], own);
                    }
                    behind += share;
                }
            });
    });
}

}  // namespace hedgerow
