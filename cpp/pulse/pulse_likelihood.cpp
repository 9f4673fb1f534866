// SPDX-License-Identifier: Apache-2.0
#include "pulse/pulse_likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "trace/pierce.hpp"

namespace hedgerow {
namespace {

// Of one ray: density at the measured range, and probability that nothing comes back from within the limits.
struct Mixture {
    double density, none;
};

Mixture mix(const std::vector<Crossing>& crossings, float range_m, RangeLimits limits, float min_sigma_m) {
    double reaching = 1, density = 0, none = 0;
    for (const Crossing& crossing : crossings) {
        const double weight = reaching * (1.0 - crossing.pass);
        const double sigma = std::max(crossing.sigma_m, min_sigma_m);
        if (std::isfinite(range_m)) density += weight * normal_density(range_m, crossing.mean_m, sigma);
        none += weight * outside(limits, crossing.mean_m, sigma);
        reaching *= crossing.pass;
    }
    return {density, none + reaching};
}

// The pulses of a chunk, a block at a time.
class BlockLikelihood {
  public:
    BlockLikelihood(const Scene& scene, RTCScene embree, const BeamArrays& beams, std::span<const float> range_m,
                    const Spot& spot, RangeLimits limits, float min_sigma_m, std::span<double> out)
        : embree_(embree),
          beams_(beams),
          range_m_(range_m),
          spot_(spot),
          limits_(limits),
          min_sigma_m_(min_sigma_m),
          out_(out),
          context_(scene),
          rays_(fresh_rays()),
          axis_(kBlock),
          sub_rays_(kBlock * static_cast<std::size_t>(spot.size())) {
        context_.crossings = found_;
        context_.ends_at_opaque = true;
        for (float& limit : context_.max_range_m.at) limit = limits.max_m;
        std::fill_n(far_m_, kBlock, limits.max_m);
    }

    void run(Chunk chunk) {
        const BeamOrder order(beams_, chunk);
        const std::size_t n = chunk.end - chunk.begin;
        for (std::size_t begin = 0; begin < n; begin += kBlock) {
            n_pulses_ = std::min(kBlock, n - begin);
            for (std::size_t i = 0; i < n_pulses_; ++i) axes_.set(i, beams_, order[begin + i]);
            pierce();
            for (std::size_t i = 0; i < n_pulses_; ++i) out_[axes_.beam[i]] = log_density(i);
        }
    }

  private:
    void pierce() {
        SubRays axes;
        for (std::size_t first = 0; first < n_pulses_; first += kLanes) {
            aim_axes(axes_, first, n_pulses_, limits_.max_m, axes, rays_);
            pierce_packet(axes);
            for (int lane = 0; lane < kLanes && first + lane < n_pulses_; ++lane) take(lane, axis_[first + lane]);
        }
        for_sub_rays(axes_, n_pulses_, spot_, [&](const SubRays& sub_rays, int count, std::size_t first) {
            aim(spot_, axes_, sub_rays, 0, far_m_, rays_);
            pierce_packet(sub_rays);
            for (int lane = 0; lane < count; ++lane) take(lane, sub_rays_[first + lane]);
        });
    }

    void pierce_packet(const SubRays& sub_rays) {
        for (int lane = 0; lane < kLanes; ++lane) {
            found_[lane].clear();
            context_.direction[0][lane] = rays_.ray.dir_x[lane];
            context_.direction[1][lane] = rays_.ray.dir_y[lane];
            context_.direction[2][lane] = rays_.ray.dir_z[lane];
        }
        intersect(sub_rays.valid, embree_, context_, rays_, note_triangles);
    }

    void take(int lane, std::vector<Crossing>& out) {
        std::sort(found_[lane].begin(), found_[lane].end());
        out.swap(found_[lane]);
    }

    double log_density(std::size_t i) {
        const float range_m = range_m_[axes_.beam[i]];
        const auto s = static_cast<std::size_t>(spot_.size());
        double density = 0, returned = 0, none = mix(axis_[i], range_m, limits_, min_sigma_m_).none;
        for (std::size_t k = 0; k < s; ++k) {
            const std::vector<Crossing>& own = sub_rays_[i * s + k];
            none *= mix(own, range_m, limits_, min_sigma_m_).none;
            together_.clear();
            std::merge(axis_[i].begin(), axis_[i].end(), own.begin(), own.end(), std::back_inserter(together_));
            const Mixture mixed = mix(together_, range_m, limits_, min_sigma_m_);
            density += spot_.share[k] * mixed.density;
            returned += spot_.share[k] * (1 - mixed.none);
        }
        if (!std::isfinite(range_m)) return std::log(none);
        return std::log(returned > 0 ? (1 - none) * density / returned : 0.0);
    }

    RTCScene embree_;
    const BeamArrays& beams_;
    std::span<const float> range_m_;
    const Spot& spot_;
    RangeLimits limits_;
    float min_sigma_m_;
    std::span<double> out_;
    PacketContext<> context_;
    RTCRayHit8 rays_;
    std::size_t n_pulses_ = 0;
    Axes axes_;
    float far_m_[kBlock];
    std::vector<Crossing> found_[kLanes];
    std::vector<std::vector<Crossing>> axis_, sub_rays_;  // what each axis and each sub-ray crosses, nearest first
    std::vector<Crossing> together_;
};

}  // namespace

void pulse_log_likelihood(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, const Spot& spot,
                          RangeLimits limits, float min_sigma_m, int threads, const Tick& tick,
                          std::span<double> log_density_out) {
    if (!scene.answers(Answer::sub_ray))
        return log_likelihood(scene, beams, range_m, limits, min_sigma_m, threads, tick, log_density_out);
    require_masks(scene);
    const RTCScene embree = scene.embree(Purpose::pierce);
    for_chunks(beams, threads, tick, [&](Chunk chunk) {
        BlockLikelihood(scene, embree, beams, range_m, spot, limits, min_sigma_m, log_density_out).run(chunk);
    });
}

}  // namespace hedgerow
