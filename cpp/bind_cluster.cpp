// SPDX-License-Identifier: Apache-2.0
// Bindings of what learners do with points: moments per voxel, top-down clusters.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "bind.hpp"
#include "cluster.hpp"
#include "voxel_sums.hpp"

namespace hedgerow {
namespace {

template <typename T>
using Rows = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

void add_returns(VoxelSums& sums, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& range_m,
                 const nb::object& intensity, const nb::object& label, int threads, const nb::object& progress) {
    const auto directions = values<float>(direction, "direction", -1, 3);
    const auto n = static_cast<std::ptrdiff_t>(directions.size() / 3);
    const std::size_t per_beam = range_m.ndim() == 2 ? range_m.shape(1) : 1;
    ReturnArrays returns{values<double>(origin_m, "origin_m", n, 3),
                         directions,
                         values<float>(range_m, "range_m", n, per_beam),
                         {},
                         {},
                         per_beam};
    if (!intensity.is_none())
        returns.intensity = values<float>(nb::cast<AnyArray>(intensity), "intensity", n, per_beam);
    if (!label.is_none()) returns.label = values<std::uint16_t>(nb::cast<AnyArray>(label), "label", n, per_beam);
    nb::gil_scoped_release release;
    sums.add(returns, threads, ticker(progress));
}

// Adds rows of a table that `voxel_table` made, for example in another process.
void add_table(VoxelSums& sums, const AnyArray& key, const AnyArray& whole, const AnyArray& real,
               const AnyArray& label_row, const AnyArray& label, const AnyArray& label_count) {
    const auto keys = values<std::int32_t>(key, "key", -1, 3);
    const auto n = static_cast<std::ptrdiff_t>(keys.size() / 3);
    const auto wholes = values<std::int64_t>(whole, "whole", n, 11);
    const auto reals = values<double>(real, "real", n, 2);
    const auto rows = values<std::int64_t>(label_row, "label_row", -1);
    const auto n_labels = static_cast<std::ptrdiff_t>(rows.size());
    const auto labels = values<std::uint16_t>(label, "label", n_labels);
    const auto counts = values<std::int64_t>(label_count, "label_count", n_labels);
    const auto key_of = [&](std::size_t row) { return VoxelKey{keys[3 * row], keys[3 * row + 1], keys[3 * row + 2]}; };
    for (const std::int64_t row : rows)
        if (row < 0 || row >= n) throw nb::value_error("label_row: names a row that is not there");
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const std::int64_t* w = &wholes[11 * i];
        VoxelSum sum{w[0],  {w[1], w[2], w[3]}, {w[4], w[5], w[6], w[7], w[8], w[9]},
                     w[10], reals[2 * i],       reals[2 * i + 1]};
        sums.add_voxel(key_of(i), sum);
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
        sums.add_label(key_of(static_cast<std::size_t>(rows[i])), labels[i], counts[i]);
}

auto voxel_table(const VoxelSums& sums) {
    std::vector<std::uint32_t> by_key(sums.size()), row_of(sums.size());
    std::iota(by_key.begin(), by_key.end(), 0u);
    std::ranges::sort(by_key, {}, [&](std::uint32_t i) { return sums.keys()[i]; });
    const Fresh<std::int32_t> key(sums.size(), 3);
    const Fresh<std::int64_t> whole(sums.size(), 11);
    const Fresh<double> real(sums.size(), 2);
    for (std::size_t row = 0; row < by_key.size(); ++row) {
        row_of[by_key[row]] = static_cast<std::uint32_t>(row);
        const VoxelKey& k = sums.keys()[by_key[row]];
        const VoxelSum& sum = sums.sums()[by_key[row]];
        std::ranges::copy(std::array{k.x, k.y, k.z}, &key.values[3 * row]);
        std::int64_t* w = &whole.values[11 * row];
        w[0] = sum.count;
        std::ranges::copy(sum.first, w + 1);
        std::ranges::copy(sum.second, w + 4);
        w[10] = sum.known;
        real.values[2 * row] = sum.intensity;
        real.values[2 * row + 1] = sum.intensity_squared;
    }
    // By row, then label.
    std::vector<std::pair<std::uint64_t, std::int64_t>> labelled(sums.label_counts().size());
    for (std::size_t i = 0; i < labelled.size(); ++i) {
        const std::uint64_t entry = sums.label_keys()[i];
        labelled[i] = {std::uint64_t{row_of[entry >> 16]} << 16 | (entry & 0xffff), sums.label_counts()[i]};
    }
    std::ranges::sort(labelled);
    const Fresh<std::int64_t> label_row(labelled.size()), label_count(labelled.size());
    const Fresh<std::uint16_t> label(labelled.size());
    for (std::size_t i = 0; i < labelled.size(); ++i) {
        label_row.values[i] = static_cast<std::int64_t>(labelled[i].first >> 16);
        label.values[i] = static_cast<std::uint16_t>(labelled[i].first);
        label_count.values[i] = labelled[i].second;
    }
    return std::make_tuple(key.rows3(), nb::cast<Rows<std::int64_t>>(whole.array), nb::cast<Rows<double>>(real.array),
                           label_row.column(), label.column(), label_count.column());
}

auto cluster_points(const AnyArray& points, int clusters, std::int64_t split_points, int restarts, int iterations,
                    double tolerance, bool partition_start, std::uint64_t seed, std::uint64_t root, int threads,
                    const nb::object& progress) {
    const auto positions = values<double>(points, "points", -1, 3);
    if (positions.size() / 3 >= 1ull << 32) throw nb::value_error("points: more than 32 bits can number");
    if (clusters < 2 || clusters > kMaxClusters) throw nb::value_error("clusters: must be from 2 to 64");
    if (split_points < 2 || restarts < 1 || iterations < 1)
        throw nb::value_error("split_points, restarts, iterations: too small");
    Clusters found;
    {
        nb::gil_scoped_release release;
        found = cluster(positions,
                        {clusters, static_cast<std::size_t>(split_points), restarts, iterations, tolerance,
                         partition_start, seed, root, threads},
                        ticker(progress));
    }
    const Fresh<std::uint32_t> order(found.order.size());
    const Fresh<std::int64_t> begin(found.begin.size());
    std::ranges::copy(found.order, order.values.begin());
    std::ranges::copy(found.begin, begin.values.begin());
    return std::make_tuple(order.column(), begin.column());
}

}  // namespace

void bind_cluster(nb::module_& m) {
    nb::class_<VoxelSums>(m, "VoxelSums", "Moments of points per voxel; positions are summed exactly.")
        .def(nb::init<double>(), nb::arg("side_m"))
        .def("__len__", &VoxelSums::size)
        .def("add", add_returns, nb::arg("origin_m").noconvert(), nb::arg("direction").noconvert(),
             nb::arg("range_m").noconvert(), nb::arg("intensity").none(), nb::arg("label").none(), nb::arg("threads"),
             nb::arg("progress").none(), "Adds the points of all finite ranges.")
        .def("merge", &VoxelSums::merge, nb::arg("other"), "Adds the sums of others with the same side.")
        .def("add_table", add_table, nb::arg("key").noconvert(), nb::arg("whole").noconvert(),
             nb::arg("real").noconvert(), nb::arg("label_row").noconvert(), nb::arg("label").noconvert(),
             nb::arg("label_count").noconvert(), "Adds a table of sums.")
        .def("table", voxel_table,
             "All sums, sorted by voxel: key (x, y, z); whole (count, sums of x, y, z, of xx, xy, xz, yy, yz, zz in "
             "steps "
             "of side / 2^18 from the voxel's centre, count of known intensities); real (sums of intensity and of its "
             "square); label_row, label, label_count.");
    m.attr("STEPS_PER_SIDE") = kStepsPerSide;
    m.def("cluster", cluster_points, nb::arg("points").noconvert(), nb::arg("clusters"), nb::arg("split_points"),
          nb::arg("restarts"), nb::arg("iterations"), nb::arg("tolerance"), nb::arg("partition_start"), nb::arg("seed"),
          nb::arg("root"), nb::arg("threads"), nb::arg("progress").none(),
          "Leaves of recursive K-means: (order, begin); leaf i has the points order[begin[i]:begin[i + 1]].");
}

}  // namespace hedgerow
