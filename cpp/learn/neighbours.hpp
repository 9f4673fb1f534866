// SPDX-License-Identifier: Apache-2.0
// Points sorted into the cells of a sparse cubic grid, and the points around a cell.
//
// The grid is anchored at the map's zero, not at the points, and points keep their given order within a cell. So what
// a cell sees around it, and in which order, does not depend on what else is in the set: a tile with a wide enough
// halo gives the bytes that the whole gives. Cells lie in memory by z, y, x: a row of three is one contiguous range.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hedgerow {

using CellKey = std::uint64_t;
constexpr int kCellBits = 21;

struct Range {
    std::uint32_t begin, end;
};
using Rows = std::array<Range, 9>;  // the 27 cells around and including one

class CellGrid {
  public:
    // Position: 3 per point. Throws std::invalid_argument if the points span more than two million cells.
    CellGrid(std::span<const double> position_m, double cell_m);

    struct Cell {
        CellKey key;
        std::uint32_t begin;
    };
    std::size_t n_cells() const { return cells_.size() - 1; }
    CellKey key(std::size_t cell) const { return cells_[cell].key; }
    Range points(std::size_t cell) const { return {cells_[cell].begin, cells_[cell + 1].begin}; }
    double cell_m() const { return cell_m_; }

    // Number of the i-th point in cell order, as given.
    std::uint32_t number(std::size_t i) const { return order_[i]; }

    // Cell's place in the whole grid, along x, y, z.
    std::array<std::int64_t, 3> place(CellKey key) const;
    static CellKey moved(CellKey key, int dx, int dy, int dz) {
        return key + static_cast<CellKey>(dx + (static_cast<std::int64_t>(dy) << kCellBits) +
                                          (static_cast<std::int64_t>(dz) << (2 * kCellBits)));
    }

    // All cells that have a point in themselves or next to them, ascending.
    std::vector<CellKey> reached() const;

    // Ranges of points around cells that are asked for in ascending order.
    class Walk {
      public:
        Walk(const CellGrid& grid, CellKey first);
        const Rows& around(CellKey key);

      private:
        std::size_t advance(std::size_t from, CellKey key) const;
        const CellGrid& grid_;
        std::array<std::size_t, 9> cursor_;
        Rows rows_;
    };

  private:
    double cell_m_;
    std::array<std::int64_t, 3> low_;  // place of key zero
    std::vector<Cell> cells_;          // ascending; one more at the end
    std::vector<std::uint32_t> order_;
};

}  // namespace hedgerow
