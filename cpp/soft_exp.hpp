// SPDX-License-Identifier: Apache-2.0
// exp(x) for x <= 0 that compilers turn into vector instructions, and that is the same whatever the C library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hedgerow {

// Relative error below 3e-7 down to -80; smaller arguments count as -80.
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
