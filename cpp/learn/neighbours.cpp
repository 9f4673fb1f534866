// SPDX-License-Identifier: Apache-2.0
#include "learn/neighbours.hpp"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/parallel.hpp"

namespace hedgerow {
namespace {

constexpr std::size_t kPiece = 16384;
constexpr CellKey kMask = (CellKey{1} << kCellBits) - 1;

struct Keyed {
    CellKey key;
    std::uint32_t index;
};

std::int64_t cell_of(double x, double cell_m) { return static_cast<std::int64_t>(std::floor(x / cell_m)); }

// Two below the lowest cell in use: the cells next to those in use have neighbours with valid keys, too.
std::array<std::int64_t, 3> lowest(std::span<const double> position_m, double cell_m) {
    std::array<std::int64_t, 3> low{};
    for (int axis = 0; axis < 3; ++axis) {
        double least = std::numeric_limits<double>::max(), most = std::numeric_limits<double>::lowest();
        for (std::size_t i = axis; i < position_m.size(); i += 3) {
            least = std::min(least, position_m[i]);
            most = std::max(most, position_m[i]);
        }
        if (least > most) continue;
        if (!((most - least) / cell_m < static_cast<double>(kMask) - 4))
            throw std::invalid_argument("points lie too far apart");
        if (!(std::abs(least / cell_m) < 1e15)) throw std::invalid_argument("points lie too far from the map's zero");
        low[axis] = cell_of(least, cell_m) - 2;
    }
    return low;
}

}  // namespace

CellGrid::CellGrid(std::span<const double> position_m, double cell_m)
    : cell_m_(cell_m), low_(lowest(position_m, cell_m)) {
    const std::size_t n = position_m.size() / 3;
    std::vector<Keyed> keyed(n);
    for_pieces(n, kPiece, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            CellKey key = 0;
            for (int axis = 2; axis >= 0; --axis)
                key = key << kCellBits | static_cast<CellKey>(cell_of(position_m[3 * i + axis], cell_m) - low_[axis]);
            keyed[i] = {key, static_cast<std::uint32_t>(i)};
        }
    });
    tbb::parallel_sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
        return a.key != b.key ? a.key < b.key : a.index < b.index;
    });
    order_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        order_[i] = keyed[i].index;
        if (i == 0 || keyed[i].key != keyed[i - 1].key) cells_.push_back({keyed[i].key, static_cast<std::uint32_t>(i)});
    }
    cells_.push_back({std::numeric_limits<CellKey>::max(), static_cast<std::uint32_t>(n)});
}

std::array<std::int64_t, 3> CellGrid::place(CellKey key) const {
    return {static_cast<std::int64_t>(key & kMask) + low_[0],
            static_cast<std::int64_t>(key >> kCellBits & kMask) + low_[1],
            static_cast<std::int64_t>(key >> (2 * kCellBits)) + low_[2]};
}

std::vector<CellKey> CellGrid::reached() const {
    // Rows along x first: dropping repeats there leaves less to sort.
    std::vector<CellKey> keys;
    for (std::size_t c = 0; c < n_cells(); ++c)
        for (int dx = -1; dx <= 1; ++dx) {
            const CellKey key = moved(cells_[c].key, dx, 0, 0);
            if (keys.empty() || key > keys.back()) keys.push_back(key);
        }
    const std::size_t n_rows = keys.size();
    for (int d = 0; d < 9; ++d)
        if (d != 4)
            for (std::size_t i = 0; i < n_rows; ++i) keys.push_back(moved(keys[i], 0, d % 3 - 1, d / 3 - 1));
    tbb::parallel_sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
}

CellGrid::Walk::Walk(const CellGrid& grid, CellKey first) : grid_(grid) {
    for (int d = 0; d < 9; ++d) {
        const CellKey from = moved(first, -1, d % 3 - 1, d / 3 - 1);
        const auto found = std::lower_bound(grid.cells_.begin(), grid.cells_.end() - 1, from,
                                            [](const Cell& cell, CellKey key) { return cell.key < key; });
        cursor_[d] = static_cast<std::size_t>(found - grid.cells_.begin());
    }
}

// First cell from there on whose key is not below; near ones are found in a step or two.
std::size_t CellGrid::Walk::advance(std::size_t from, CellKey key) const {
    const auto& cells = grid_.cells_;
    const std::size_t last = cells.size() - 1;
    std::size_t step = 1, low = from;
    while (low < last && cells[std::min(low + step, last)].key < key) {
        low = std::min(low + step, last);
        step *= 2;
    }
    if (low >= last || cells[low].key >= key) return low;
    const std::size_t high = std::min(low + step, last);
    return static_cast<std::size_t>(std::lower_bound(cells.begin() + static_cast<std::ptrdiff_t>(low + 1),
                                                     cells.begin() + static_cast<std::ptrdiff_t>(high), key,
                                                     [](const Cell& cell, CellKey k) { return cell.key < k; }) -
                                    cells.begin());
}

const Rows& CellGrid::Walk::around(CellKey key) {
    const auto& cells = grid_.cells_;
    for (int d = 0; d < 9; ++d) {
        const CellKey from = moved(key, -1, d % 3 - 1, d / 3 - 1), to = moved(from, 2, 0, 0);
        std::size_t cell = cursor_[d] = advance(cursor_[d], from);
        const std::uint32_t begin = cells[cell].begin;
        while (cells[cell].key <= to) ++cell;  // the one at the end has the largest key there is
        rows_[d] = {begin, cells[cell].begin};
    }
    return rows_;
}

}  // namespace hedgerow
