// SPDX-License-Identifier: Apache-2.0
// The receiver that records the whole signal: a sum of pulse-shaped echoes, sampled, and its peaks.
//
// Time is told as range: one sample of period T lies c T / 2 behind the one before. Sample k is at k steps, whatever
// the light, as if the clock started with the pulse. A sub-ray stands for its part of the spot: on a tilted surface its
// echo is as long as that part is deep, so grazing ground is one long echo and no row of short ones.
// Equations: docs/models.md §19.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pulse/receiver.hpp"

namespace hedgerow {

struct Digitiser {
    double fwhm_m;  // full width at half maximum of the Gaussian pulse
    double step_m;  // from sample to sample
};

constexpr double kWholeReach = 3;     // below 2e-11 of the peak beyond
constexpr double kDetectedReach = 1.6;  // below 1e-3 of the peak beyond: less than any second echo that is reported

// Joins reflections that lie within a small part of the pulse of each other, nearest first: one reflection with their
// light, its mean range and its variance, and label, element and noise of the brightest. Replaces them, returns how many.
std::size_t join_close(std::span<Reflection> light, double fwhm_m);

class Waveform {
  public:
    // Echoes are recorded up to `reach` of their widths from their peaks.
    Waveform(const Digitiser& digitiser, double reach) : digitiser_(digitiser), reach_(reach) {}

    // Records the light of one pulse, nearest first. A tilted surface stretches its echo, and makes it as much lower.
    void record(std::span<const Reflection> light);

    // Peaks of what was recorded, at most so many, nearest first: local maxima with at least this much light, placed
    // between the samples by a parabola through their logarithms (exact for one Gaussian echo). The reflection that
    // gives most light at a peak gives its label, element and noise.
    void peaks(std::span<const Reflection> light, float threshold, int most, Echoes& out) const;

    // Copies what was recorded from sample `first` on; samples without light are 0.
    void copy_to(std::span<float> samples, std::ptrdiff_t first) const;

  private:
    float sample(std::ptrdiff_t k) const { return samples_[static_cast<std::size_t>(k)]; }
    double range_m(double k) const { return (static_cast<double>(first_) + k) * digitiser_.step_m; }
    Echo echo_at(std::ptrdiff_t k, std::span<const Reflection> light) const;
    double half_width(std::ptrdiff_t peak, double offset, int side, float half) const;

    Digitiser digitiser_;
    double reach_;
    std::ptrdiff_t first_ = 0;    // number of the first sample kept
    std::vector<float> samples_;  // empty without light
};

}  // namespace hedgerow
