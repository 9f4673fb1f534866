// SPDX-License-Identifier: Apache-2.0
// Bits of coordinates interleaved: numbers that are close along the Morton curve are close in space.
#pragma once

#include <cstdint>

namespace hedgerow {

// The ten low bits of x, each followed by two zeros.
inline std::uint32_t spread3(std::uint32_t x) {
    x = (x | (x << 16)) & 0x030000ffu;
    x = (x | (x << 8)) & 0x0300f00fu;
    x = (x | (x << 4)) & 0x030c30c3u;
    return (x | (x << 2)) & 0x09249249u;
}

}  // namespace hedgerow
