// SPDX-License-Identifier: Apache-2.0
// The positions of all numbers up to a limit: eight at a time where the processor can, and the same list where not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace hedgerow {

#if defined(__AVX2__)
// For each way eight can be chosen from, the chosen ones first.
inline constexpr auto kChosenFirst = [] {
    std::array<std::array<std::uint8_t, 8>, 256> table{};
    for (unsigned mask = 0; mask < 256; ++mask)
        for (unsigned bit = 0, n = 0; bit < 8; ++bit)
            if (mask >> bit & 1) table[mask][n++] = static_cast<std::uint8_t>(bit);
    return table;
}();
#endif

// Writes the positions of value[0] to value[n - 1] that are at most the limit, and returns how many they are. There must
// be room for n + 8 of them.
inline std::size_t positions_up_to(const float* value, std::size_t n, float limit, std::uint32_t* position) {
    std::size_t found = 0, i = 0;
#if defined(__AVX2__)
    const __m256 limits = _mm256_set1_ps(limit);
    for (; i + 8 <= n; i += 8) {
        const auto mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(value + i), limits, _CMP_LE_OQ)));
        const __m128i chosen = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kChosenFirst[mask].data()));
        const __m256i positions = _mm256_add_epi32(_mm256_cvtepu8_epi32(chosen), _mm256_set1_epi32(static_cast<int>(i)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(position + found), positions);
        found += static_cast<std::size_t>(_mm_popcnt_u32(mask));
    }
#endif
    for (; i < n; ++i) {  // no branch: which are chosen is hard to predict
        position[found] = static_cast<std::uint32_t>(i);
        found += value[i] <= limit;
    }
    return found;
}

}  // namespace hedgerow
