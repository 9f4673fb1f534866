// SPDX-License-Identifier: Apache-2.0
// The receiver: from the light of one pulse's sub-rays to its returns (Goodin 2018 §3.2.3).
//
// The receiver adds up light over a window as long as the cutoff. Where the window lies depends on the mode
// (Goodin 2018 Fig. 2): it begins with the nearest light (first), ends with the farthest (last), or holds the most
// (strongest). Its range is the mean over its light, its intensity the sum. A window below the threshold is not seen,
// the next one may be. Windows only ever move to the right from first to strongest to last, and so do their means:
// these three can never change places.
//
// That is `Processing::light`, the windows of Goodin 2018 Fig. 2. `Processing::paper` is the text of its §3.2.3, which
// knows single rays: `strongest` is the most intense ray, `last` the farthest, and `first` the plain average of the
// rays within the cutoff of the nearest. `Processing::detected` has no windows: echoes are peaks of the signal, and
// detector.hpp tells which are reported. Equations: docs/models.md §18.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "scene/scene.hpp"

namespace hedgerow {

constexpr int kMaxSubRays = 81;

enum class ReturnMode : int {
    first,
    strongest,
    last,
    second,  // the second strongest; the strongest if there is one alone
    strongest_and_last,
    strongest_and_second,
    strongest_and_last_or_second,  // the second strongest where the strongest is the last
    all,
    waveform
};

enum class Processing : int { light, paper, detected };

// What one sub-ray brings back.
struct Reflection {
    float range_m;
    float light;                // its share of the pulse, times intensity, times falloff
    float share;                // of the pulse
    float cosine;               // of the incidence angle, for the noise
    float slant_m;              // standard deviation of the range within its part of the spot, on a tilted surface
    const SurfaceNoise* noise;  // of the electronics on this material; nullptr if the range was drawn already
    std::uint16_t label;
    bool known;    // whether the element has an intensity; if not, the light is a guess
    bool certain;  // whether it was learned: lost returns are in it already
    std::int64_t element;

    // As if the whole pulse had gone this way: reflectance times cosine, times falloff.
    float intensity() const { return light / share; }
};

struct Echo {
    float range_m, intensity;
    float amplitude;  // light at the peak, also where the intensity is unknown; of waveforms and `detected`
    float width_m;    // full width at half maximum, of waveforms; NaN otherwise
    float cosine;     // of its brightest reflection, as the following
    const SurfaceNoise* noise;
    std::uint32_t draw;  // which of the pulse's random numbers is its noise
    std::uint16_t label;
    std::int64_t element;
    bool certain;  // see Reflection

    void take(const Reflection& brightest) {
        cosine = brightest.cosine;
        noise = brightest.noise;
        label = brightest.label;
        element = brightest.element;
        certain = brightest.certain;
        if (!brightest.known) intensity = std::numeric_limits<float>::quiet_NaN();
    }
};

struct Receiver {
    ReturnMode mode;
    Processing processing;  // `paper` has no `second`, `all` and `waveform`; `detected` is detector.hpp
    float cutoff_m;
    float threshold;  // a return has at least this much light; of `paper`: each ray this intensity
    int max_returns;  // of modes `all` and `waveform`: the nearest
};

// Returns of one pulse, nearest first.
struct Echoes {
    std::array<Echo, kMaxSubRays> at;
    int count = 0;
    void add(const Echo& echo) { at[count++] = echo; }
};

// An echo of these reflections, of which the strongest (the nearest of equals) gives label, element and noise.
Echo echo_of(std::span<const Reflection> light);

// Reflections, at most kMaxSubRays, must lie nearest first. Not for mode `waveform` nor for `detected`.
void receive(const Receiver& receiver, std::span<const Reflection> light, Echoes& out);

}  // namespace hedgerow
