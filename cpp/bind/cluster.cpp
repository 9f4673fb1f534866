// SPDX-License-Identifier: Apache-2.0
// Bindings of what learners do with points: moments per voxel, top-down clusters.
#include "learn/cluster.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "bind/bind.hpp"
#include "learn/voxel_sums.hpp"

namespace hedgerow {
namespace {

void make_sums(VoxelSums* self, double side_m) {
    require_within(std::span<const double>(&side_m, 1), "side_m", kFarthest_m);
    if (side_m <= 0) throw nb::value_error("side_m: must be above 0");
    new (self) VoxelSums(side_m);
}

void add_returns(VoxelSums& sums, const AnyArray& origin_m, const AnyArray& direction, const AnyArray& range_m,
                 const nb::object& intensity, const nb::object& label, int threads, const nb::object& progress) {
    const auto directions = values<float>(direction, "direction", -1, 3);
    const auto n = static_cast<std::ptrdiff_t>(directions.size() / 3);
    const std::size_t per_beam = range_m.ndim() == 2 ? range_m.shape(1) : 1;
    MeasuredArrays returns{values<double>(origin_m, "origin_m", n, 3),
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
void add_table(VoxelSums& sums, const AnyArray& key, const AnyArray& count, const AnyArray& first,
               const AnyArray& second, const AnyArray& n_intensity, const AnyArray& intensity,
               const AnyArray& intensity_squared, const AnyArray& label_row, const AnyArray& label,
               const AnyArray& label_count) {
    const auto keys = values<std::int32_t>(key, "key", -1, 3);
    const auto n = static_cast<std::ptrdiff_t>(keys.size() / 3);
    const auto counts = values<std::int64_t>(count, "count", n),
               known = values<std::int64_t>(n_intensity, "n_intensity", n);
    const auto firsts = values<std::int64_t>(first, "first", n, 3),
               seconds = values<std::int64_t>(second, "second", n, 6);
    const auto intensities = values<std::int64_t>(intensity, "intensity", n, 2);
    const auto squares = values<std::int64_t>(intensity_squared, "intensity_squared", n, 2);
    const auto rows = values<std::int64_t>(label_row, "label_row", -1);
    const auto n_labels = static_cast<std::ptrdiff_t>(rows.size());
    const auto labels = values<std::uint16_t>(label, "label", n_labels);
    const auto label_counts = values<std::int64_t>(label_count, "label_count", n_labels);
    const auto key_of = [&](std::size_t row) { return VoxelKey{keys[3 * row], keys[3 * row + 1], keys[3 * row + 2]}; };
    for (const std::int64_t row : rows)
        if (row < 0 || row >= n) throw nb::value_error("label_row: names a row that is not there");
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const SplitSum first_power{intensities[2 * i], intensities[2 * i + 1]};
        VoxelSum sum{counts[i], {}, {}, known[i], first_power, {squares[2 * i], squares[2 * i + 1]}};
        std::copy_n(&firsts[3 * i], 3, sum.first.begin());
        std::copy_n(&seconds[6 * i], 6, sum.second.begin());
        sums.add_voxel(key_of(i), sum);
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
        sums.add_label(key_of(static_cast<std::size_t>(rows[i])), labels[i], label_counts[i]);
}

struct VoxelTable {
    VoxelTable(std::size_t n, std::size_t n_labels)
        : key(n, 3),
          count(n),
          first(n, 3),
          second(n, 6),
          n_intensity(n),
          intensity(n, 2),
          intensity_squared(n, 2),
          label_row(n_labels),
          label(n_labels),
          label_count(n_labels) {}

    Fresh<Rows3<std::int32_t>> key;
    Fresh<Column<std::int64_t>> count;
    Fresh<Rows3<std::int64_t>> first;
    Fresh<Table<std::int64_t>> second;
    Fresh<Column<std::int64_t>> n_intensity;
    Fresh<Table<std::int64_t>> intensity, intensity_squared;  // whole parts, and the rest in steps
    Fresh<Column<std::int64_t>> label_row;
    Fresh<Column<std::uint16_t>> label;
    Fresh<Column<std::int64_t>> label_count;
};

// Voxels with at least `min_count` points, sorted by key.
VoxelTable voxel_table(const VoxelSums& sums, std::int64_t min_count) {
    constexpr std::uint32_t kLeftOut = ~0u;
    std::vector<std::uint32_t> by_key, row_of(sums.size(), kLeftOut);
    for (std::uint32_t i = 0; i < sums.size(); ++i)
        if (sums.sums()[i].count >= min_count) by_key.push_back(i);
    std::ranges::sort(by_key, {}, [&](std::uint32_t i) { return sums.keys()[i]; });
    for (std::size_t row = 0; row < by_key.size(); ++row) row_of[by_key[row]] = static_cast<std::uint32_t>(row);
    // By row, then label.
    std::vector<std::pair<std::uint64_t, std::int64_t>> labelled;
    for (std::size_t i = 0; i < sums.label_counts().size(); ++i) {
        const std::uint64_t entry = sums.label_keys()[i], row = row_of[entry >> 16];
        if (row != kLeftOut) labelled.emplace_back(row << 16 | (entry & 0xffff), sums.label_counts()[i]);
    }
    std::ranges::sort(labelled);
    const VoxelTable table(by_key.size(), labelled.size());
    for (std::size_t row = 0; row < by_key.size(); ++row) {
        const VoxelKey& k = sums.keys()[by_key[row]];
        const VoxelSum& sum = sums.sums()[by_key[row]];
        std::ranges::copy(std::array{k.x, k.y, k.z}, &table.key.values[3 * row]);
        table.count.values[row] = sum.count;
        std::ranges::copy(sum.first, &table.first.values[3 * row]);
        std::ranges::copy(sum.second, &table.second.values[6 * row]);
        table.n_intensity.values[row] = sum.known;
        std::ranges::copy(std::array{sum.intensity.whole, sum.intensity.rest}, &table.intensity.values[2 * row]);
        std::ranges::copy(std::array{sum.intensity_squared.whole, sum.intensity_squared.rest},
                          &table.intensity_squared.values[2 * row]);
    }
    for (std::size_t i = 0; i < labelled.size(); ++i) {
        table.label_row.values[i] = static_cast<std::int64_t>(labelled[i].first >> 16);
        table.label.values[i] = static_cast<std::uint16_t>(labelled[i].first);
        table.label_count.values[i] = labelled[i].second;
    }
    return table;
}

auto cluster_points(const AnyArray& points, const ClusterSettings& settings, int threads, const nb::object& progress) {
    const auto positions = values<double>(points, "points", -1, 3);
    if (positions.size() / 3 >= 1ull << 32) throw nb::value_error("points: more than 32 bits can number");
    if (settings.clusters < 2 || settings.clusters > kMaxClusters)
        throw nb::value_error("clusters: must be from 2 to 64");
    if (settings.split_points < 2 || settings.restarts < 1 || settings.iterations < 1)
        throw nb::value_error("split_points, restarts, iterations: too small");
    if (settings.restarts > 10'000) throw nb::value_error("restarts: must be at most 10,000");
    require_within(positions, "points", kFarthest_m);
    Clusters found;
    {
        nb::gil_scoped_release release;
        found = cluster(positions, settings, threads, ticker(progress));
    }
    const Fresh<Column<std::uint32_t>> order(found.order);
    const Fresh<Column<std::int64_t>> begin(found.begin.size());
    std::ranges::copy(found.begin, begin.values.begin());
    return std::make_tuple(order.get(), begin.get());
}

}  // namespace

void bind_cluster(nb::module_& m) {
    bind_answer(
        m, "VoxelTable",
        "Sums by voxel: first (x, y, z) and second (xx, xy, xz, yy, yz, zz) moments in steps of side / 2^18 from "
        "the voxel's centre; label_count points of voxel label_row have label.",
        field("key", &VoxelTable::key), field("count", &VoxelTable::count), field("first", &VoxelTable::first),
        field("second", &VoxelTable::second), field("n_intensity", &VoxelTable::n_intensity),
        field("intensity", &VoxelTable::intensity), field("intensity_squared", &VoxelTable::intensity_squared),
        field("label_row", &VoxelTable::label_row), field("label", &VoxelTable::label),
        field("label_count", &VoxelTable::label_count));
    nb::class_<VoxelSums>(m, "VoxelSums", "Moments of points per voxel; positions are summed exactly.")
        .def("__init__", make_sums, nb::arg("side_m"))
        .def("__len__", &VoxelSums::size)
        .def("add", add_returns, nb::kw_only(), nb::arg("origin_m").noconvert(), nb::arg("direction").noconvert(),
             nb::arg("range_m").noconvert(), nb::arg("intensity").none(), nb::arg("label").none(), nb::arg("threads"),
             nb::arg("progress").none(), "Adds the points of all finite ranges.")
        .def("merge", &VoxelSums::merge, nb::arg("other"), "Adds the sums of others with the same side.")
        .def("add_table", add_table, nb::kw_only(), nb::arg("key").noconvert(), nb::arg("count").noconvert(),
             nb::arg("first").noconvert(), nb::arg("second").noconvert(), nb::arg("n_intensity").noconvert(),
             nb::arg("intensity").noconvert(), nb::arg("intensity_squared").noconvert(),
             nb::arg("label_row").noconvert(), nb::arg("label").noconvert(), nb::arg("label_count").noconvert(),
             "Adds a table of sums.")
        .def("table", voxel_table, nb::kw_only(), nb::arg("min_count"),
             "Sums of the voxels with at least so many points, sorted by voxel.");
    m.attr("STEPS_PER_SIDE") = kStepsPerSide;
    nb::enum_<ClusterStart>(m, "ClusterStart", "The first means: of a random partition, random points, or on an axis.")
        .value("partition", ClusterStart::partition)
        .value("points", ClusterStart::points)
        .value("axis", ClusterStart::axis);
    using Settings = ClusterSettings;
    bind_settings(m, "ClusterSettings", "Recursive K-means.", field("clusters", &Settings::clusters),
                  field("split_points", &Settings::split_points), field("restarts", &Settings::restarts),
                  field("iterations", &Settings::iterations), field("tolerance", &Settings::tolerance),
                  field("start", &Settings::start), field("max_skewness", &Settings::max_skewness),
                  field("max_kurtosis", &Settings::max_kurtosis), field("seed", &Settings::seed),
                  field("root", &Settings::root));
    m.def("cluster", cluster_points, nb::arg("points").noconvert(), nb::arg("settings"), nb::kw_only(),
          nb::arg("threads"), nb::arg("progress").none(),
          "Leaves of recursive K-means: (order, begin); leaf i has the points order[begin[i]:begin[i + 1]].");
}

}  // namespace hedgerow
