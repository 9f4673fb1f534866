// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers. Nothing here has state: every number is a function of the seed, the pulse and,
// for coins, the element, so results depend neither on threads nor on batches nor on the order of traversal.
#pragma once

#include <cstdint>

#include "base/lanes.hpp"

namespace hedgerow {

struct Words4 {
    std::uint32_t at[4];
};

// Philox4x32 with seven rounds, the fewest that pass BigCrush (Salmon et al., 2011).
inline Words4 philox(std::uint64_t seed, std::uint64_t pulse, std::uint32_t sub_ray, std::uint32_t stream) {
    std::uint32_t c0 = static_cast<std::uint32_t>(pulse), c1 = static_cast<std::uint32_t>(pulse >> 32);
    std::uint32_t c2 = sub_ray, c3 = stream;
    std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 7; ++round) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
        const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
        const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c1 = static_cast<std::uint32_t>(p1);
        c3 = static_cast<std::uint32_t>(p0);
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

// A bijective mixer of 32 bits with low bias (Wellons, "lowbias32").
inline std::uint32_t mix(std::uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

// The upper 23 bits as a number in (0, 1), plus a half: exact in float, never 0 and never 1.
inline float open_unit(std::uint32_t h) {
    return (static_cast<float>(static_cast<std::int32_t>(h >> 9)) + 0.5f) * 0x1p-23f;
}

// The coin of one element for one ray, in (0, 1). key_a and key_b are Philox words of the ray.
inline float coin(std::uint32_t key_a, std::uint32_t key_b, std::uint64_t element) {
    const std::uint32_t low = static_cast<std::uint32_t>(element);
    const std::uint32_t high = static_cast<std::uint32_t>(element >> 32);
    return open_unit(mix(mix(key_a + low * 0x9E3779B1u) ^ (key_b + high * 0x85EBCA6Bu)));
}

// Two independent standard normal numbers from two words (Box-Muller).
struct NormalPair {
    float first, second;
};

inline NormalPair normal_pair(std::uint32_t word_a, std::uint32_t word_b) {
    const float u = (static_cast<float>(static_cast<std::int32_t>(word_a >> 8)) + 0.5f) * 0x1p-24f;
    const float v = static_cast<float>(static_cast<std::int32_t>(word_b >> 8)) * 0x1p-24f;
    const float radius = std::sqrt(-2.0f * log_positive(u));
    const float quarter_on = v < 0.75f ? v + 0.25f : v - 0.75f;
    return {radius * cos_turns(v), radius * cos_turns(quarter_on)};
}

// What a packet of rays needs: two words each for the coins, and normal numbers for the range and the intensity.
template <int N = kLanes>
struct PacketRandom {
    Lanes<std::uint32_t, N> key_a, key_b;
    Lanes<float, N> normal, second_normal;

    // Of one sub-ray of each pulse.
    void draw(std::uint64_t seed, const Lanes<std::uint64_t, N>& pulse, const Lanes<std::uint32_t, N>& sub_ray) {
#pragma omp simd
        for (int lane = 0; lane < N; ++lane) {
            const Words4 words = philox(seed, pulse[lane], sub_ray[lane], 0);
            key_a[lane] = words.at[0];
            key_b[lane] = words.at[1];
            const NormalPair pair = normal_pair(words.at[2], words.at[3]);
            normal[lane] = pair.first;
            second_normal[lane] = pair.second;
        }
    }

    // Of the axis of each pulse.
    void draw(std::uint64_t seed, const Lanes<std::uint64_t, N>& pulse) {
        draw(seed, pulse, Lanes<std::uint32_t, N>{});
    }
};

}  // namespace hedgerow
