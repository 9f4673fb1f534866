// SPDX-License-Identifier: Apache-2.0
#include "pulse/waveform.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "base/lanes.hpp"

namespace hedgerow {
namespace {

constexpr double kJoined = 1.0 / 16;  // of the pulse: what is joined is off by 1e-4 of the peak
constexpr double kMostSamples = 1e8;
constexpr double kFwhmPerSigma = 2.3548200450309493;  // of a normal distribution: sqrt(8 ln 2)
constexpr float kDim = 1e-6f;                         // what a black surface sends back: enough to be told from nothing
constexpr float kFloor = 1e-6f;                       // of the highest sample: lower maxima are rounding

float decay_per_m2(double fwhm_m) { return static_cast<float>(4 * std::numbers::ln2 / (fwhm_m * fwhm_m)); }

// The echo of one reflection.
struct Shape {
    double fwhm_m;
    float height, decay;

    Shape(const Reflection& reflection, double pulse_m) {
        const double stretch_m = kFwhmPerSigma * reflection.slant_m;
        fwhm_m = std::sqrt(pulse_m * pulse_m + stretch_m * stretch_m);
        height = (reflection.light + kDim * reflection.share) * static_cast<float>(pulse_m / fwhm_m);
        decay = decay_per_m2(fwhm_m);
    }
    float at(float away_m) const { return height * exp_negative(-decay * away_m * away_m); }
};

}  // namespace

std::size_t join_close(std::span<Reflection> light, double fwhm_m) {
    const auto close_m = static_cast<float>(kJoined * fwhm_m);
    std::size_t n = 0;
    for (std::size_t begin = 0, end = 0; begin < light.size(); begin = end) {
        const float first_m = light[begin].range_m;
        double weights = 0, away_m = 0, square_m2 = 0, sum = 0, share = 0;
        const Reflection* brightest = &light[begin];
        for (; end < light.size() && light[end].range_m <= first_m + close_m; ++end) {
            const Reflection& each = light[end];
            const double weight = each.light + kDim * each.share, off_m = each.range_m - first_m;
            weights += weight;
            away_m += weight * off_m;
            square_m2 += weight * (off_m * off_m + each.slant_m * each.slant_m);
            sum += each.light;
            share += each.share;
            if (each.light > brightest->light) brightest = &each;
        }
        Reflection joined = *brightest;
        const double mean_m = weights > 0 ? away_m / weights : 0;
        joined.range_m = static_cast<float>(first_m + mean_m);
        joined.light = static_cast<float>(sum);
        joined.share = static_cast<float>(share);
        if (weights > 0)
            joined.slant_m = static_cast<float>(std::sqrt(std::max(square_m2 / weights - mean_m * mean_m, 0.0)));
        light[n++] = joined;
    }
    return n;
}

void Waveform::record(std::span<const Reflection> light) {
    samples_.clear();
    if (light.empty()) return;
    const double step_m = digitiser_.step_m;
    const float step = static_cast<float>(step_m);
    double near_m = light.front().range_m, far_m = near_m;
    for (const Reflection& each : light) {
        const double reach_m = reach_ * Shape(each, digitiser_.fwhm_m).fwhm_m;
        near_m = std::min(near_m, each.range_m - reach_m);
        far_m = std::max(far_m, each.range_m + reach_m);
    }
    if (!((far_m - near_m) / step_m < kMostSamples))
        throw std::length_error("step_m: is too small for returns so far apart");
    first_ = static_cast<std::ptrdiff_t>(std::floor(near_m / step_m)) - 1;
    const auto end = static_cast<std::ptrdiff_t>(std::ceil(far_m / step_m)) + 2;
    samples_.resize(static_cast<std::size_t>(end - first_), 0.0f);
    for (const Reflection& each : light) {
        const Shape shape(each, digitiser_.fwhm_m);
        const double reach_m = reach_ * shape.fwhm_m;
        const auto begin = static_cast<std::ptrdiff_t>(std::ceil((each.range_m - reach_m) / step_m));
        const auto stop = static_cast<std::ptrdiff_t>(std::floor((each.range_m + reach_m) / step_m)) + 1;
        const float start_m = static_cast<float>(static_cast<double>(begin) * step_m - each.range_m);
        float* out = samples_.data() + (begin - first_);
        const int n = static_cast<int>(stop - begin);
#pragma omp simd
        for (int k = 0; k < n; ++k) {
            const float away_m = start_m + static_cast<float>(k) * step;
            out[k] += shape.at(away_m);
        }
    }
}

void Waveform::peaks(std::span<const Reflection> light, float threshold, int most, Echoes& out) const {
    out.count = 0;
    if (samples_.empty()) return;
    const float floor = kFloor * *std::ranges::max_element(samples_);
    for (std::ptrdiff_t k = 1; k + 1 < std::ssize(samples_) && out.count < most; ++k) {
        if (!(sample(k) > sample(k - 1) && sample(k) >= sample(k + 1)) || sample(k) < floor) continue;
        Echo echo = echo_at(k, light);
        if (echo.intensity < threshold) continue;  // a guess, not NaN, where the intensity is unknown
        echo.draw = static_cast<std::uint32_t>(out.count);
        const auto brightest = [&](const Reflection& each) {
            return Shape(each, digitiser_.fwhm_m).at(each.range_m - echo.range_m);
        };
        echo.take(*std::ranges::max_element(light, {}, brightest));
        out.add(echo);
    }
}

Echo Waveform::echo_at(std::ptrdiff_t k, std::span<const Reflection> light) const {
    const auto log_of = [&](std::ptrdiff_t i) { return std::log(std::max(static_cast<double>(sample(i)), 1e-37)); };
    const double left = log_of(k - 1), middle = log_of(k), right = log_of(k + 1);
    const double bend = left - 2 * middle + right;
    const double offset = bend < 0 ? std::clamp(0.5 * (left - right) / bend, -0.5, 0.5) : 0;
    const double height = std::exp(middle - 0.25 * (left - right) * offset);
    Echo echo{};
    // A lone reflection, or one among others, cannot be placed beyond all light.
    echo.range_m = std::clamp(static_cast<float>(range_m(static_cast<double>(k) + offset)), light.front().range_m,
                              light.back().range_m);
    echo.intensity = echo.amplitude = static_cast<float>(height);
    const float half = static_cast<float>(0.5 * height);
    echo.width_m =
        static_cast<float>(digitiser_.step_m * (half_width(k, offset, -1, half) + half_width(k, offset, 1, half)));
    return echo;
}

// Steps from the peak to where the signal falls to half, or to the valley before the next echo if that is higher.
double Waveform::half_width(std::ptrdiff_t peak, double offset, int side, float half) const {
    std::ptrdiff_t k = peak;
    const double from = static_cast<double>(side) * offset;
    while (k + side >= 0 && k + side < std::ssize(samples_)) {
        const float here = sample(k), next = sample(k + side);
        if (next < half && here >= half)
            return std::abs(static_cast<double>(k - peak)) + (here - half) / (here - next) - from;
        if (next > here) break;
        k += side;
    }
    return std::abs(static_cast<double>(k - peak)) - from;
}

void Waveform::copy_to(std::span<float> samples, std::ptrdiff_t first) const {
    std::ranges::fill(samples, 0.0f);
    const std::ptrdiff_t begin = std::max(first, first_);
    const std::ptrdiff_t end = std::min(first + std::ssize(samples), first_ + std::ssize(samples_));
    for (std::ptrdiff_t k = begin; k < end; ++k) samples[static_cast<std::size_t>(k - first)] = sample(k - first_);
}

}  // namespace hedgerow
