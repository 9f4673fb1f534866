// SPDX-License-Identifier: Apache-2.0
// Sums of 64 bits that go round instead of being undefined, should somebody feed in numbers that no log has.
#pragma once

#include <cstdint>

namespace hedgerow {

inline std::int64_t difference(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

inline void add_to(std::int64_t& sum, std::int64_t number) {
    sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(number));
}

}  // namespace hedgerow
