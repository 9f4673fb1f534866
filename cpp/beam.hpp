// SPDX-License-Identifier: Apache-2.0
// Pulses with width: each is traced as a stencil of sub-rays, whose light the receiver turns into returns (003 §3.2).
//
// Sub-rays are packed by pulse, and pulses by ring: a packet of eight holds neighbouring sub-rays of one pulse or two.
// Coins are keyed by (seed, pulse, sub-ray, element), so every sub-ray passes permeable elements on its own.
#pragma once

#include <optional>

#include "batch.hpp"
#include "fire.hpp"
#include "receiver.hpp"
#include "waveform.hpp"

namespace hedgerow {

// Where the sub-rays go: points of the unit spot, which is the square from -1 to 1 or the disk of radius 1.
struct Spot {
    std::span<const float> points;  // 2 per sub-ray (left, up); empty if drawn
    // 4 per sub-ray: the cell to draw a point of: two intervals of left and of up, or in the round spot of the squared
    // radius and of the angle in turns.
    std::span<const float> cells;
    std::span<const float> share;  // of the pulse's light
    bool round;
    float half_m[2];   // half the width (left, up) where the light leaves the sensor
    float tangent[2];  // of half the divergence

    int size() const { return static_cast<int>(share.size()); }
};

struct Optics {
    float falloff_m;          // light counts as (falloff_m / range)^2; 0: whatever the range
    float unknown_intensity;  // what elements of unknown intensity count as
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
    std::span<float> width_m;  // empty if not wanted
};

struct SampleArrays {
    std::span<float> samples;  // empty if not wanted
    std::ptrdiff_t first;      // number of the first sample
    std::size_t per_pulse;
};

struct BeamSettings {
    Spot spot;
    Optics optics;
    RangeLimits limits;
    Receiver receiver;
    std::optional<Digitiser> digitiser;  // if the mode is `waveform`
    std::uint64_t seed;
};

struct BeamOutput {
    EchoArrays echoes;
    SubRayArrays sub_rays;
    SampleArrays waveforms;
};

void fire_beam(Scene& scene, const BeamArrays& beams, const BeamSettings& settings, int threads, const Tick& tick,
               const BeamOutput& out);

}  // namespace hedgerow
