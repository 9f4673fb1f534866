// SPDX-License-Identifier: Apache-2.0
// What a scene forecasts for each pulse: the distribution of its range, without drawing from it.
//
// Along a ray, element i stops it with weight w_i and then returns a normal range (pierce.hpp). Ranges outside the
// limits, and pulses that nothing stops, give no return, which counts as a range at the far limit.
// Equations: docs/models.md §33.
#pragma once

#include <span>
#include <vector>

#include "trace/pierce.hpp"

namespace hedgerow {

// One number for each beam.
struct ForecastArrays {
    std::span<double> returns;   // probability of a return
    std::span<float> median_m;   // median of the range of a return; infinite where none is possible
    std::span<float> intensity;  // mean intensity of a return; NaN where it is unknown
    std::span<double> error_m;   // E|X - y| of a drawn range X and the measured one y; empty: not wanted
    std::span<double> spread_m;  // E|X - X'| of two drawn ranges; empty: not wanted
};

// `range_m` are the measured ranges, infinite for no return; empty where error_m is.
void forecast(Scene& scene, const BeamArrays& beams, std::span<const float> range_m, RangeLimits limits,
              float min_sigma_m, int threads, const Tick& tick, const ForecastArrays& out);

// The distribution of the range along one ray. The limits are finite.
class RangeForecast {
  public:
    explicit RangeForecast(RangeLimits limits, float min_sigma_m) : limits_(limits), min_sigma_m_(min_sigma_m) {}

    void take(const std::vector<Crossing>& crossings);
    double returns() const { return returns_; }
    float median_m() const;
    float intensity() const;
    double error_m(float range_m) const;
    double spread_m() const;

  private:
    // A normal range that is cut off at the limits.
    struct Part {
        double weight;                 // probability that the ray stops here
        double mean_m, sigma_m;        // of the whole normal range
        double below_low, below_high;  // probabilities that it lies below the near and the far limit
        double inside;                 // weight times the probability to lie between them
        double mean_inside_m, sigma_inside_m;
        float intensity;
    };
    double share_below(double range_m) const;

    RangeLimits limits_;
    double min_sigma_m_;
    std::vector<Part> parts_;
    double returns_ = 0;
};

}  // namespace hedgerow
