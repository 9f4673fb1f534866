// SPDX-License-Identifier: Apache-2.0
// Arithmetic written so that a loop over the lanes of a packet becomes vector code: no branches, no calls.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hedgerow {

// How many rays go together: eight everywhere, sixteen where that is faster (embree.hpp).
constexpr int kLanes = 8, kWideLanes = 16;

template <typename T, int N = kLanes>
struct alignas(4 * N) Lanes {
    T at[N];
    T& operator[](int lane) { return at[lane]; }
    const T& operator[](int lane) const { return at[lane]; }
};

// exp(x) for x <= 0, relative error below 2e-7; below -87 it is 0. Cephes' polynomial.
inline float exp_negative(float x) {
    const float clipped = x < -87.0f ? -87.0f : x;
    const float n = std::floor(clipped * 1.44269504f + 0.5f);
    const float r = clipped - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const float power = std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
    return x < -87.0f ? 0.0f : p * power;
}

// log(x) for normal x > 0, absolute error below 2e-7 relative to 1 + |log x|. Cephes' polynomial.
inline float log_positive(float x) {
    const std::int32_t bits = std::bit_cast<std::int32_t>(x);
    // Mantissa in [sqrt(1/2), sqrt(2)), so that the series is centred on 1.
    const std::int32_t shifted = bits - 0x3f3504f3;
    const float exponent = static_cast<float>(shifted >> 23);
    const float m = std::bit_cast<float>((shifted & 0x007fffff) + 0x3f3504f3) - 1.0f;
    const float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    return m * z * p - 0.5f * z + exponent * -2.12194440e-4f + m + exponent * 0.693359375f;
}

// cos(2 pi x) for x in [0, 1), absolute error below 3e-7: folded to a quarter turn, then a sine series.
inline float cos_turns(float x) {
    const float half = std::fabs(x - 0.5f);         // cos(2 pi x) = -cos(2 pi half), half in [0, 1/2]
    const float a = (half - 0.25f) * 6.283185307f;  // -cos(2 pi half) = sin(a), a in [-pi/2, pi/2]
    const float z = a * a;
    float p = 2.7525562e-6f;
    p = p * z - 1.9840874e-4f;
    p = p * z + 8.3333310e-3f;
    p = p * z - 1.6666667e-1f;
    return a + a * z * p;
}

// exp(x) for x <= 0 that is the same whatever the C library. Relative error below 3e-7 down to -80; smaller arguments
// count as -80.
inline float soft_exp(float x) {
    const float t = (x > -80.0f ? x : -80.0f) * 1.44269504f;
    const float whole = std::floor(t), f = t - whole;
    // 2^f on [0, 1), minimax.
    float p = 1.8775767e-3f;
    p = p * f + 8.9893397e-3f;
    p = p * f + 5.5826318e-2f;
    p = p * f + 2.4015361e-1f;
    p = p * f + 6.9315308e-1f;
    p = p * f + 9.9999994e-1f;
    return p * std::bit_cast<float>((static_cast<std::int32_t>(whole) + 127) << 23);
}

}  // namespace hedgerow
