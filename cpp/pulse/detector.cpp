// SPDX-License-Identifier: Apache-2.0
#include "pulse/detector.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.hpp"

namespace hedgerow {
namespace {

// Streams of random numbers; 0 to 3 are those of `fire_pulses`.
constexpr std::uint32_t kAmplitudeStream = 4, kFalseAlarmStream = 5;

}  // namespace

void Detection::add_noise(std::uint64_t seed, std::uint64_t pulse, Echoes& echoes) const {
    if (!(detector_.softness > 0)) return;
    for (int k = 0; k < echoes.count; ++k) {
        const Words4 words = philox(seed, pulse, static_cast<std::uint32_t>(k), kAmplitudeStream);
        echoes.at[k].amplitude *= std::exp(detector_.softness * normal_pair(words.at[0], words.at[1]).first);
    }
}

// As bright as an echo must be, like most of what noise alone lifts over a threshold.
void Detection::add_false_alarm(RangeLimits limits, std::uint64_t seed, std::uint64_t pulse, Echoes& echoes) const {
    if (!(detector_.false_alarms > 0) || !std::isfinite(limits.max_m) || echoes.count == kMaxSubRays) return;
    const Words4 words = philox(seed, pulse, 0, kFalseAlarmStream);
    if (open_unit(words.at[0]) >= detector_.false_alarms) return;
    Echo echo{};
    echo.range_m = limits.min_m + (limits.max_m - limits.min_m) * open_unit(words.at[1]);
    echo.amplitude = detector_.threshold;
    echo.intensity = 0;
    echo.width_m = std::numeric_limits<float>::quiet_NaN();
    echo.element = -1;
    echo.draw = static_cast<std::uint32_t>(echoes.count);
    int at = echoes.count;
    for (; at > 0 && echoes.at[at - 1].range_m > echo.range_m; --at) echoes.at[at] = echoes.at[at - 1];
    echoes.at[at] = echo;
    ++echoes.count;
}

bool Detection::reported(const Echoes& echoes, int candidate) const {
    const Echo& echo = echoes.at[candidate];
    if (count_ == 0) return echo.certain || echo.amplitude >= detector_.threshold;
    const float needed = std::max(detector_.second_threshold * detector_.threshold,
                                  detector_.second_ratio * echoes.at[ranked_[0]].amplitude);
    if (!echo.certain && echo.amplitude < needed) return false;
    return std::all_of(ranked_.begin(), ranked_.begin() + count_, [&](int brighter) {
        return std::fabs(echoes.at[brighter].range_m - echo.range_m) >= detector_.separation_m;
    });
}

void Detection::rank(const Echoes& echoes) {
    std::array<int, kMaxSubRays> order;
    std::iota(order.begin(), order.begin() + echoes.count, 0);
    std::stable_sort(order.begin(), order.begin() + echoes.count,  // the nearest of equals first
                     [&](int a, int b) { return echoes.at[a].amplitude > echoes.at[b].amplitude; });
    count_ = 0;
    for (int k = 0; k < echoes.count; ++k)
        if (reported(echoes, order[k])) ranked_[count_++] = order[k];
}

void Detection::choose(const Receiver& receiver, RangeLimits limits, std::uint64_t seed, std::uint64_t pulse,
                       Echoes& echoes) {
    add_noise(seed, pulse, echoes);
    add_false_alarm(limits, seed, pulse, echoes);
    rank(echoes);
    std::array<int, kMaxSubRays> wanted;
    int n = 0;
    if (count_ > 0) {
        const int strongest = ranked_[0], second = count_ > 1 ? ranked_[1] : -1;
        const int nearest = *std::min_element(ranked_.begin(), ranked_.begin() + count_);
        const int farthest = *std::max_element(ranked_.begin(), ranked_.begin() + count_);
        switch (receiver.mode) {
            case ReturnMode::first:
                wanted[n++] = nearest;
                break;
            case ReturnMode::strongest:
                wanted[n++] = strongest;
                break;
            case ReturnMode::last:
                wanted[n++] = farthest;
                break;
            case ReturnMode::second:
                wanted[n++] = second >= 0 ? second : strongest;
                break;
            case ReturnMode::strongest_and_last:
                wanted[n++] = strongest;
                if (farthest != strongest) wanted[n++] = farthest;
                break;
            case ReturnMode::strongest_and_second:
                wanted[n++] = strongest;
                if (second >= 0) wanted[n++] = second;
                break;
            case ReturnMode::strongest_and_last_or_second:
                wanted[n++] = strongest;
                if (farthest != strongest)
                    wanted[n++] = farthest;
                else if (second >= 0)
                    wanted[n++] = second;
                break;
            case ReturnMode::all:
            case ReturnMode::waveform:
                std::copy_n(ranked_.begin(), count_, wanted.begin());
                n = count_;
        }
        std::sort(wanted.begin(), wanted.begin() + n);  // nearest first
        if (receiver.mode == ReturnMode::all || receiver.mode == ReturnMode::waveform)
            n = std::min(n, receiver.max_returns);
    }
    for (int k = 0; k < n; ++k) echoes.at[k] = echoes.at[wanted[k]];  // wanted[k] >= k: nothing is lost
    echoes.count = n;
}

}  // namespace hedgerow
