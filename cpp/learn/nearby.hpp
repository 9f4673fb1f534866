// SPDX-License-Identifier: Apache-2.0
// The points around one cell, copied together and made relative to its centre, and those within a radius of a place.
//
// Float32 is enough there: distances are metres at most, so a step is below a micrometre even at UTM coordinates.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "learn/neighbours.hpp"

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

// Eight at a time where the processor can, and the same list where not.
// Writes the positions of value[0] to value[n - 1] that are at most the limit, and returns how many they are. There
// must be room for n + 8 of them.
inline std::size_t positions_up_to(const float* value, std::size_t n, float limit, std::uint32_t* position) {
    std::size_t found = 0, i = 0;
#if defined(__AVX2__)
    const __m256 limits = _mm256_set1_ps(limit);
    for (; i + 8 <= n; i += 8) {
        const auto mask =
            static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(value + i), limits, _CMP_LE_OQ)));
        const __m128i chosen = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kChosenFirst[mask].data()));
        const __m256i positions =
            _mm256_add_epi32(_mm256_cvtepu8_epi32(chosen), _mm256_set1_epi32(static_cast<int>(i)));
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

class Nearby {
  public:
    // Position: 3 per point, weight: one per point, in the order the grid was given them.
    void load(const CellGrid& grid, CellKey cell, const Rows& rows, std::span<const double> position_m,
              std::span<const float> weight_of) {
        const auto place = grid.place(cell);
        for (int axis = 0; axis < 3; ++axis) centre_[axis] = (static_cast<double>(place[axis]) + 0.5) * grid.cell_m();
        std::size_t n = 0;
        for (const Range& row : rows) n += row.end - row.begin;
        for (auto* column : {&x, &y, &z, &weight, &squared_}) column->resize(n);
        number.resize(n);
        picked_.resize(n + 8);
        std::size_t out = 0;
        for (const Range& row : rows)
            for (std::uint32_t i = row.begin; i < row.end; ++i, ++out) {
                const double* p = &position_m[3 * std::size_t{number[out] = grid.number(i)}];
                x[out] = static_cast<float>(p[0] - centre_[0]);
                y[out] = static_cast<float>(p[1] - centre_[1]);
                z[out] = static_cast<float>(p[2] - centre_[2]);
                weight[out] = weight_of[number[out]];
            }
    }

    // Which of them lie within the radius of a place relative to the centre; valid until the next call.
    std::span<const std::uint32_t> within(const float at[3], float radius_m) {
        const std::size_t n = x.size();
        const float limit = radius_m * radius_m;
        const float *px = x.data(), *py = y.data(), *pz = z.data();
        float* squared = squared_.data();
#pragma omp simd
        for (std::size_t i = 0; i < n; ++i) {
            const float dx = px[i] - at[0], dy = py[i] - at[1], dz = pz[i] - at[2];
            squared[i] = dx * dx + dy * dy + dz * dz;
        }
        const std::size_t n_picked = positions_up_to(squared, n, limit, picked_.data());
        return {picked_.data(), n_picked};
    }

    float squared_distance(std::uint32_t i) const { return squared_[i]; }  // to the place last asked for
    const double* centre() const { return centre_; }
    std::size_t size() const { return x.size(); }

    std::vector<float> x, y, z, weight;
    std::vector<std::uint32_t> number;  // of each point, as given

  private:
    double centre_[3];
    std::vector<float> squared_;
    std::vector<std::uint32_t> picked_;
};

// Calls `work(state, nearby, point, at)` for every point, with its place relative to the centre of its cell and what is
// near it. Each piece of work has a state of its own.
template <typename State, typename Work>
void for_points(const CellGrid& grid, std::span<const double> position_m, std::span<const float> weight, Work&& work) {
    constexpr std::size_t kCellsPerPiece = 64;
    for_pieces(grid.n_cells(), kCellsPerPiece, [&](std::size_t, std::size_t begin, std::size_t end) {
        State state;
        Nearby nearby;
        CellGrid::Walk walk(grid, grid.key(begin));
        for (std::size_t cell = begin; cell < end; ++cell) {
            nearby.load(grid, grid.key(cell), walk.around(grid.key(cell)), position_m, weight);
            const Range own = grid.points(cell);
            for (std::uint32_t i = own.begin; i < own.end; ++i) {
                const std::uint32_t point = grid.number(i);
                float at[3];
                for (int axis = 0; axis < 3; ++axis)
                    at[axis] = static_cast<float>(position_m[3 * std::size_t{point} + axis] - nearby.centre()[axis]);
                work(state, nearby, point, at);
            }
        }
    });
}

}  // namespace hedgerow
