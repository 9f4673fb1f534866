// SPDX-License-Identifier: Apache-2.0
#include "trace/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "trace/shade.hpp"

namespace hedgerow {
namespace {

constexpr double kNothing = 1e-7;  // parts that stop fewer rays change no score that anybody could see
constexpr double kFar = 8.0;       // sigmas beyond which a normal range never lies
constexpr int kMostSteps = 60;     // of the search for the median; halving alone needs about 40

double below(double z) { return z < -kFar ? 0.0 : z > kFar ? 1.0 : 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double peak(double z) { return std::abs(z) > kFar ? 0.0 : std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi); }

// E|X| of a normal X.
double mean_distance(double mean, double sigma) {
    const double z = mean / sigma;
    if (std::abs(z) > kFar) return std::abs(mean);
    return 2 * sigma * peak(z) + mean * (2 * below(z) - 1);
}

}  // namespace

void RangeForecast::take(const std::vector<Crossing>& crossings) {
    parts_.clear();
    returns_ = 0;
    double reaching = 1;
    for (const Crossing& crossing : crossings) {
        const double weight = reaching * (1.0 - crossing.pass);
        reaching *= crossing.pass;
        if (weight > kNothing) {
            const double sigma = std::max<double>(crossing.sigma_m, min_sigma_m_), mean = crossing.mean_m;
            const double low = (limits_.min_m - mean) / sigma, high = (limits_.max_m - mean) / sigma;
            Part part{weight, mean, sigma, below(low), below(high), 0, mean, sigma, crossing.intensity};
            const double share = part.below_high - part.below_low;
            part.inside = weight * share;
            if (share < 1 && share > 0) {
                const double shift = (peak(low) - peak(high)) / share;
                const double edges = (low * peak(low) - high * peak(high)) / share;
                part.mean_inside_m = std::clamp<double>(mean + sigma * shift, limits_.min_m, limits_.max_m);
                part.sigma_inside_m = sigma * std::sqrt(std::max(0.0, 1 + edges - shift * shift));
            }
            if (part.inside > 0) {
                parts_.push_back(part);
                returns_ += part.inside;
            }
        }
        if (reaching < kNothing) break;
    }
    returns_ = std::min(returns_, 1.0);
}

// Probability of a return nearer than a range within the limits.
double RangeForecast::share_below(double range_m) const {
    double sum = 0;
    for (const Part& part : parts_)
        sum += part.weight * (below((range_m - part.mean_m) / part.sigma_m) - part.below_low);
    return sum;
}

float RangeForecast::median_m() const {
    if (parts_.empty()) return std::numeric_limits<float>::infinity();
    double low = limits_.max_m, high = limits_.min_m;
    for (const Part& part : parts_) {
        low = std::min(low, part.mean_m - kFar * part.sigma_m);
        high = std::max(high, part.mean_m + kFar * part.sigma_m);
    }
    low = std::max<double>(low, limits_.min_m), high = std::min<double>(high, limits_.max_m);
    const double half = returns_ / 2;
    double at = (low + high) / 2;
    for (int step = 0; step < kMostSteps && high - low > 1e-4; ++step) {
        double slope = 0;
        for (const Part& part : parts_) slope += part.weight * peak((at - part.mean_m) / part.sigma_m) / part.sigma_m;
        const double off = share_below(at) - half;
        (off < -1e-9 ? low : high) = at;  // the nearest median where a gap makes several
        // Newton's step where it stays within the bracket, halving elsewhere.
        const double next = slope > 0 ? at - off / slope : low;
        const bool stays = next > low && next < high;
        if (stays && std::abs(next - at) < 1e-5) return static_cast<float>(next);  // Newton has arrived
        at = stays && step % 3 != 2 ? next : (low + high) / 2;
    }
    return static_cast<float>(high);
}

float RangeForecast::intensity() const {
    double sum = 0, known = 0;
    for (const Part& part : parts_) {
        if (std::isnan(part.intensity)) continue;
        sum += part.inside * part.intensity;
        known += part.inside;
    }
    return known > 0 ? static_cast<float>(sum / known) : kUnknown;
}

double RangeForecast::error_m(float range_m) const {
    const double y = std::min(range_m, limits_.max_m);
    double sum = (1 - returns_) * (limits_.max_m - y);
    for (const Part& part : parts_) {
        // The integral of |x - y| over the normal density between the limits.
        const double z = (y - part.mean_m) / part.sigma_m;
        const double low = (limits_.min_m - part.mean_m) / part.sigma_m,
                     high = (limits_.max_m - part.mean_m) / part.sigma_m;
        sum += part.weight * ((y - part.mean_m) * (2 * below(z) - part.below_low - part.below_high) +
                              part.sigma_m * (2 * peak(z) - peak(low) - peak(high)));
    }
    return sum;
}

double RangeForecast::spread_m() const {
    double sum = 0, to_the_end = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const Part& one = parts_[i];
        to_the_end += one.inside * (limits_.max_m - one.mean_inside_m);
        sum += one.inside * one.inside * 2 * one.sigma_inside_m * std::numbers::inv_sqrtpi;
        for (std::size_t j = 0; j < i; ++j) {
            const Part& other = parts_[j];
            const double sigma = std::hypot(one.sigma_inside_m, other.sigma_inside_m);
            sum += 2 * one.inside * other.inside * mean_distance(one.mean_inside_m - other.mean_inside_m, sigma);
        }
    }
    return sum + 2 * (1 - returns_) * to_the_end;
}

void forecast(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, RangeLimits limits,
              float min_sigma_m, int threads, const Tick& tick, const ForecastArrays& out) {
    const RTCScene embree = scene.embree(Purpose::pierce);
    for_chunks(beams, threads, tick, [&](Chunk chunk) {
        RangeForecast along(limits, min_sigma_m);
        pierce_chunk(
            scene, embree, beams, chunk, limits.max_m, [&](std::size_t) { return limits.max_m; },
            [&](std::size_t beam, const std::vector<Crossing>& crossings) {
                along.take(crossings);
                out.returns[beam] = along.returns();
                out.median_m[beam] = along.median_m();
                out.intensity[beam] = along.intensity();
                if (out.error_m.empty()) return;
                out.error_m[beam] = along.error_m(range_m[beam]);
                out.spread_m[beam] = along.spread_m();
            });
    });
}

}  // namespace hedgerow
