// SPDX-License-Identifier: Apache-2.0
#include "learn/loss_gradient.hpp"

#include <atomic>
#include <cmath>
#include <numbers>
#include <vector>

#include "trace/pierce.hpp"

namespace hedgerow {
namespace {

constexpr double kNothing = 1e-7;   // smaller weights are not worth the memory traffic
constexpr double kMostSlope = 1e6;  // of one beam: keeps the fixed point far from overflow

void add(std::int64_t& sum, double value) {
    const double bounded = std::clamp(value, -kMostSlope, kMostSlope);
    std::atomic_ref(sum).fetch_add(std::llround(bounded * kFixed), std::memory_order_relaxed);
}

// A term f(t, sigma) of the score of a ray that stops at an element, with its derivatives.
struct Term {
    double value = 0, by_mean = 0, by_sigma = 0;
    void operator+=(const Term& other) { value += other.value, by_mean += other.by_mean, by_sigma += other.by_sigma; }
    Term operator*(double factor) const { return {value * factor, by_mean * factor, by_sigma * factor}; }
};

Term density(double range_m, double mean_m, double sigma) {
    const double z = (range_m - mean_m) / sigma, value = normal_density(range_m, mean_m, sigma);
    return {value, value * z / sigma, value * (z * z - 1) / sigma};
}

// E|X| of a normal X, here the error of the range.
Term error(double range_m, double mean_m, double sigma) {
    const double off = mean_m - range_m, peak = 2 * sigma * sigma * normal_density(off, 0, sigma);
    const double sign = std::erf(off / (sigma * std::numbers::sqrt2));
    return {peak + off * sign, sign, peak / sigma};
}

Term lost(RangeLimits limits, double mean_m, double sigma) {
    const auto edge = [&](double limit) { return normal_density(limit, mean_m, sigma); };
    const double far = std::isfinite(limits.max_m) ? edge(limits.max_m) : 0, near = edge(limits.min_m);
    return {outside(limits, mean_m, sigma), far - near,
            (far != 0 ? far * (limits.max_m - mean_m) / sigma : 0) - near * (limits.min_m - mean_m) / sigma};
}

// The elements of one ray and how its score changes with them.
class RayScore {
  public:
    RayScore(const RayModel& model, const LossWeights& weights) : model_(model), weights_(weights) {}

    struct Result {
        double log_density, returns, error_m;
    };

    Result weigh(const std::vector<Crossing>& crossings, float range_m) {
        const bool returned = std::isfinite(range_m);
        const std::size_t n = crossings.size();
        weight_.resize(n), likely_.resize(n), costs_.resize(n);
        double reaching = 1, likely = 0, missing = 0, error_m = 0;
        for (std::size_t i = 0; i < n; ++i) {
            weight_[i] = reaching * (1.0 - crossings[i].pass);
            reaching *= crossings[i].pass;
            const double sigma = std::max(crossings[i].sigma_m, model_.min_sigma_m), mean_m = crossings[i].mean_m;
            const Term gone = lost(model_.limits, mean_m, sigma);
            missing += weight_[i] * gone.value;
            if (returned) {
                likely_[i] = density(range_m, mean_m, sigma);
                const Term off = error(range_m, mean_m, sigma);
                error_m += weight_[i] * off.value;
                costs_[i] = off * weights_.error_nat_per_m;
                costs_[i] += gone * weights_.lost_hit_nat;
            } else {
                likely_[i] = gone;
                costs_[i] = gone * -weights_.false_hit_nat;
            }
            likely += weight_[i] * likely_[i].value;
        }
        missing += reaching;
        beyond_ = reaching;
        const double e = model_.outlier_share;
        const double outlier = returned ? e / (model_.limits.max_m - model_.limits.min_m) : e;
        const double total = likely + (returned ? 0 : reaching) + outlier / (1 - e);
        for (std::size_t i = 0; i < n; ++i) {
            share_of_.resize(n);
            share_of_[i] = weight_[i] * likely_[i].value / total;
            costs_[i] += likely_[i] * (-1 / total);
        }
        end_cost_ = returned ? weights_.lost_hit_nat : -weights_.false_hit_nat - 1 / total;
        return {std::log((1 - e) * total), 1 - missing, error_m};
    }

    // Calls visit(i, share, slope by optical depth, by mean, by sigma), farthest first.
    template <typename Visit>
    void slopes(const std::vector<Crossing>& crossings, Visit&& visit) const {
        double tail = beyond_ * end_cost_, behind = beyond_;
        for (std::size_t i = crossings.size(); i-- > 0;) {
            // More depth: what went on behind (share `first_behind` of all) stops here instead.
            const double by_depth = behind * costs_[i].value - tail;
            visit(i, share_of_[i], by_depth, weight_[i] * costs_[i].by_mean, weight_[i] * costs_[i].by_sigma);
            tail += weight_[i] * costs_[i].value;
            behind += weight_[i];
        }
    }

  private:
    const RayModel& model_;
    const LossWeights& weights_;
    std::vector<double> weight_, share_of_;
    std::vector<Term> likely_, costs_;
    double beyond_ = 0, end_cost_ = 0;
};

// The derivative of the log of the optical depth by the squared distance from the element's middle.
double depth_by_square(const Crossing& crossing, StopLaw law) {
    if (law != StopLaw::depth) return -0.5;
    // Of (1 - dist^2 / tau^2)^2, where half_m is sigma sqrt(tau^2 - dist^2); bounded at the rim, where depth is
    // nothing.
    const double rest = static_cast<double>(crossing.half_m) / crossing.sigma_m;
    return -2 / std::max(rest * rest, 1e-3);
}

// Carries derivatives by range, sigma and depth on to the element.
void add_slopes(const Crossing& crossing, const Volume& volume, const double origin[3], const double direction[3],
                double by_depth, double by_mean, double by_sigma, std::int64_t* sums) {
    const float* mean = volume.gaussian->mean;
    const float* w = volume.gaussian->whitening;
    const double q[3] = {mean[0] - origin[0], mean[1] - origin[1], mean[2] - origin[2]};
    const auto whitened = [&](const double v[3], double out[3]) {
        out[0] = w[0] * v[0];
        out[1] = w[1] * v[0] + w[2] * v[1];
        out[2] = w[3] * v[0] + w[4] * v[1] + w[5] * v[2];
    };
    double d[3], m[3], x[3];
    whitened(direction, d);
    whitened(q, m);
    const double t = crossing.mean_m, sigma = crossing.sigma_m, variance = sigma * sigma;
    for (int axis = 0; axis < 3; ++axis) x[axis] = t * d[axis] - m[axis];
    // depth u = k sigma, or k alone, times a profile of x'x
    const double depth = std::min(50.0, -std::log(std::max<double>(crossing.pass, 2e-22)));
    const double by_square = by_depth * depth * depth_by_square(crossing, volume.law);
    if (volume.law == StopLaw::extinction) by_sigma += by_depth * depth / sigma;
    for (int axis = 0; axis < 3; ++axis)
        add(sums[kSlopeMean + axis], by_mean * variance * d[axis] - 2 * by_square * x[axis]);
    int entry = kSlopeShape;
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column <= row; ++column)
            add(sums[entry++], 0.5 * by_sigma * variance * sigma * d[row] * d[column] - by_square * x[row] * x[column] +
                                   0.5 * by_mean * variance * (d[row] * x[column] + x[row] * d[column]));
    add(sums[kSlopeStop], by_depth * depth);
}

}  // namespace

void loss_gradient(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, const RayModel& model,
                   const LossWeights& weights, int threads, const Tick& tick, std::span<std::int64_t> sums,
                   std::span<double> scores) {
    const RTCScene embree = scene.embree(Purpose::pierce);
    const Reach reach(scene, model.min_sigma_m);
    const std::vector<Volume> volumes = scene.volumes();
    const bool to_the_end = weights.error_nat_per_m > 0 || weights.lost_hit_nat > 0;
    for_chunks(beams, threads, tick, [&](Chunk chunk) {
        RayScore score(model, weights);
        pierce_chunk(
            scene, embree, beams, chunk, model.limits.max_m,
            [&](std::size_t beam) { return to_the_end ? model.limits.max_m : reach(range_m[beam]); },
            [&](std::size_t beam, const std::vector<Crossing>& crossings) {
                const auto result = score.weigh(crossings, range_m[beam]);
                scores[3 * beam] = result.log_density;
                scores[3 * beam + 1] = result.returns;
                scores[3 * beam + 2] = result.error_m;
                double origin[3], direction[3];
                for (int axis = 0; axis < 3; ++axis) {
                    origin[axis] = beams.origin_m[3 * beam + axis] - beams.scene_origin_m[axis];
                    direction[axis] = beams.direction[3 * beam + axis];
                }
                const bool returned = std::isfinite(range_m[beam]);
                score.slopes(
                    crossings, [&](std::size_t i, double share, double by_depth, double by_mean, double by_sigma) {
                        const std::uint64_t element = crossings[i].element;
                        std::int64_t* own = &sums[kLossSums * element];
                        if (returned && share > kNothing) add(own[kShare], share);
                        if (!crossings[i].is_volume()) return;
                        const double sigma = crossings[i].sigma_m;
                        if (std::abs(by_depth) + sigma * (std::abs(by_mean) + std::abs(by_sigma)) < kNothing) return;
                        add_slopes(crossings[i], volumes[element], origin, direction, by_depth, by_mean, by_sigma, own);
                    });
            });
    });
}

}  // namespace hedgerow
