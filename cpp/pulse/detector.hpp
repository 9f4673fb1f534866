// SPDX-License-Identifier: Apache-2.0
// From the echoes of one pulse to what a real receiver reports: a link budget and a noisy threshold.
//
// An echo is a peak of the recorded signal. Its amplitude is uncertain (speckle, photons, the electronics): it is
// multiplied by a log-normal number, so an echo as bright as the threshold is detected in half of its pulses. The
// strongest echo has to reach the threshold. Any other has to reach a higher one, a share of the strongest, and a
// distance to every brighter one: makers set these so that ringing and stretched echoes are no second returns.
//
// Elements that were learned hold lost returns already: what they send back is detected always.
// Equations: docs/models.md §18.
#pragma once

#include <cstdint>

#include "pulse/receiver.hpp"
#include "trace/fire.hpp"

namespace hedgerow {

struct Detector {
    float threshold;         // light at which half of the echoes are detected
    float softness;          // sigma of the logarithm of an amplitude; 0: a hard threshold
    float second_threshold;  // what every echo but the strongest has to reach, in thresholds
    float second_ratio;      // and its share of the strongest
    float separation_m;      // and how far it lies from every brighter one that is reported
    float false_alarms;      // share of pulses with an echo of nothing, anywhere within the limits
};

// Which of a pulse's echoes are reported.
class Detection {
  public:
    explicit Detection(const Detector& detector) : detector_(detector) {}

    // Replaces the echoes of a pulse, nearest first, by those that are detected and that the mode asks for, nearest
    // first again. Amplitudes become the noisy ones.
    void choose(const Receiver& receiver, RangeLimits limits, std::uint64_t seed, std::uint64_t pulse, Echoes& echoes);

  private:
    void add_noise(std::uint64_t seed, std::uint64_t pulse, Echoes& echoes) const;
    void add_false_alarm(RangeLimits limits, std::uint64_t seed, std::uint64_t pulse, Echoes& echoes) const;
    void rank(const Echoes& echoes);
    bool reported(const Echoes& echoes, int candidate) const;

    const Detector& detector_;
    std::array<int, kMaxSubRays> ranked_;  // numbers of the detected echoes, the strongest first
    int count_ = 0;
};

}  // namespace hedgerow
