// SPDX-License-Identifier: Apache-2.0
// Pulses with width: each is traced as a stencil of sub-rays, whose light the receiver turns into returns (Goodin 2018
// §3.2).
//
// Sub-rays are packed by pulse, and pulses by ring: a packet of eight holds neighbouring sub-rays of one pulse or two.
// Coins are keyed by (seed, pulse, sub-ray, element), so every sub-ray passes permeable elements on its own.
//
// Elements that answer pulses (scene.hpp) are met by the axis alone, with the coins of `fire`. What stops the axis
// stops all sub-rays that no mesh has stopped before it, so one receiver gets the light of both.
#pragma once

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "pulse/detector.hpp"
#include "pulse/receiver.hpp"
#include "pulse/sub_rays.hpp"
#include "pulse/waveform.hpp"
#include "trace/batch.hpp"
#include "trace/fire.hpp"

namespace hedgerow {

// How much light comes back.
struct LightModel {
    float falloff_m;  // light counts as (falloff_m / range)^falloff; 0: whatever the range
    float falloff;
    float unknown_intensity;  // what elements of unknown intensity count as

    float at(float range_m) const {
        if (!(falloff_m > 0)) return 1;
        const float near = falloff_m / range_m;
        return falloff == 2 ? near * near : std::pow(near, falloff);
    }
};

// One entry per sub-ray and beam, as in ReturnArrays; all empty if not wanted.
struct SubRayArrays {
    std::span<float> range_m;
    std::span<float> intensity;
    std::span<std::uint16_t> label;
    std::span<std::int64_t> element;
};

// `per_pulse` entries per beam, nearest first; those without return are as in ReturnArrays.
struct EchoArrays {
    int per_pulse;
    std::span<float> range_m;
    std::span<float> intensity;
    std::span<std::uint16_t> label;
    std::span<std::int64_t> element;
    std::span<float> width_m, amplitude;  // empty if not wanted
};

struct SampleArrays {
    std::span<float> samples;  // empty if not wanted
    std::ptrdiff_t first;      // number of the first sample
    std::size_t per_pulse;
};

struct PulseSettings {
    Spot spot;
    LightModel light;
    RangeLimits limits;
    Receiver receiver;
    Digitiser digitiser;  // of mode `waveform` and of `detected`
    Detector detector;    // of `detected`
    std::uint64_t seed;
};

struct PulseOutput {
    EchoArrays echoes;
    SubRayArrays sub_rays;
    SampleArrays waveforms;
};

void fire_pulses(Scene& scene, const BeamArrays& beams, const PulseSettings& settings, int threads, const Tick& tick,
                 const PulseOutput& out);

}  // namespace hedgerow
