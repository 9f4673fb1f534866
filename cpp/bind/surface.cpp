// SPDX-License-Identifier: Apache-2.0
// Bindings for points and their surroundings: thinning, normals, classification scores, surfaces.
#include "learn/surface.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bind/bind.hpp"
#include "learn/normals.hpp"
#include "learn/thin.hpp"

namespace hedgerow {
namespace {

Table<std::uint8_t> thinned_rows(const std::vector<ThinnedPoint>& thinned) {
    const Fresh<Table<std::uint8_t>> out(thinned.size(), sizeof(ThinnedPoint));
    if (!thinned.empty()) std::memcpy(out.values.data(), thinned.data(), out.values.size());
    return out.get();
}

constexpr std::int64_t kMostPoints = std::int64_t{1} << 40;

double most(const ThinnedPoint& point) { return 4 * kThinUnit * static_cast<double>(point.count); }

std::span<const ThinnedPoint> thinned_from(const AnyArray& rows, std::ptrdiff_t n) {
    const auto bytes = values<std::uint8_t>(rows, "thinned", n, sizeof(ThinnedPoint));
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(ThinnedPoint) != 0)
        throw nb::type_error("thinned: not aligned");
    const std::span points(reinterpret_cast<const ThinnedPoint*>(bytes.data()), bytes.size() / sizeof(ThinnedPoint));
    std::int64_t total = 0;  // small enough that sums over all of them fit
    for (const ThinnedPoint& point : points) {
        const bool sound = point.count >= 0 && point.count <= kMostPoints - total && point.n_intensity >= 0 &&
                           point.n_intensity <= point.count;
        const auto within = [&](std::int64_t sum) { return std::abs(static_cast<double>(sum)) <= most(point); };
        if (!sound || !std::ranges::all_of(point.offset, within) || !std::ranges::all_of(point.toward, within))
            throw nb::value_error("thinned: no sums of points");
        total += point.count;
    }
    return points;
}

auto thin_points(const AnyArray& position_m, const AnyArray& toward, const AnyArray& intensity, const AnyArray& label,
                 double voxel_m, int threads) {
    const auto labels = values<std::uint16_t>(label, "label", -1);
    const auto n = static_cast<std::ptrdiff_t>(labels.size());
    const PointsToThin points{values<double>(position_m, "position_m", n, 3), values<float>(toward, "toward", n, 3),
                              values<float>(intensity, "intensity", n), labels};
    require_within(points.toward, "toward", 2);
    const Fresh<Column<std::uint32_t>> thinned_of(labels.size());
    std::vector<ThinnedPoint> thinned;
    {
        nb::gil_scoped_release release;
        thinned = thin(points, voxel_m, threads, thinned_of.values);
    }
    return std::make_tuple(thinned_rows(thinned), thinned_of.get());
}

auto merged_thinned(const AnyArray& thinned, int threads) {
    const auto rows = thinned_from(thinned, -1);
    std::vector<ThinnedPoint> merged;
    {
        nb::gil_scoped_release release;
        merged = merge_thinned(rows, threads);
    }
    return thinned_rows(merged);
}

auto normals_of(const AnyArray& position_m, const AnyArray& weight, const AnyArray& toward, const PlaneFit& fit,
                int threads) {
    const auto weights = values<float>(weight, "weight", -1);
    const auto n = static_cast<std::ptrdiff_t>(weights.size());
    const auto positions = values<double>(position_m, "position_m", n, 3);
    const auto towards = values<float>(toward, "toward", n, 3);
    const Fresh<Rows3<float>> normal(weights.size(), 3);
    {
        nb::gil_scoped_release release;
        fit_normals(positions, weights, towards, fit, threads, normal.values);
    }
    return normal.get();
}

auto spectra_of(const AnyArray& position_m, float radius_m, int threads) {
    const auto positions = values<double>(position_m, "position_m", -1, 3);
    const Fresh<Rows3<float>> eigenvalue(positions.size() / 3, 3);
    const Fresh<Column<std::uint32_t>> count(positions.size() / 3);
    {
        nb::gil_scoped_release release;
        local_spectra(positions, radius_m, threads, eigenvalue.values, count.values);
    }
    return std::make_tuple(eigenvalue.get(), count.get());
}

auto smoothed_scores(const AnyArray& position_m, const AnyArray& score, const Bilateral& filter, int threads) {
    const auto scores = values<float>(score, "score", -1);
    const auto positions = values<double>(position_m, "position_m", static_cast<std::ptrdiff_t>(scores.size()), 3);
    const Fresh<Column<float>> smoothed(scores.size());
    {
        nb::gil_scoped_release release;
        smooth_scores(positions, scores, filter, threads, smoothed.values);
    }
    return smoothed.get();
}

struct SurfaceTriangles {
    Fresh<Column<double>> corners_m;
    Fresh<Column<float>> intensity, intensity_sigma;
    Fresh<Column<std::int64_t>> n_labels;
    Fresh<Column<std::uint16_t>> label;
    Fresh<Column<std::int64_t>> label_count;
};

SurfaceTriangles surface_of(const AnyArray& thinned, const AnyArray& position_m, const AnyArray& normal,
                            const AnyArray& weight, const SurfaceSettings& settings, int threads) {
    const auto rows = thinned_from(thinned, -1);
    const auto n = static_cast<std::ptrdiff_t>(rows.size());
    const SurfacePoints points{values<double>(position_m, "position_m", n, 3), values<float>(normal, "normal", n, 3),
                               values<float>(weight, "weight", n), rows};
    SurfaceMesh mesh;
    {
        nb::gil_scoped_release release;
        mesh = make_surface(points, settings, threads);
    }
    return {Fresh<Column<double>>(mesh.corners_m),      Fresh<Column<float>>(mesh.intensity),
            Fresh<Column<float>>(mesh.intensity_sigma), Fresh<Column<std::int64_t>>(mesh.n_labels),
            Fresh<Column<std::uint16_t>>(mesh.label),   Fresh<Column<std::int64_t>>(mesh.label_count)};
}

void bind_surface_mesh(nb::module_& m) {
    using Mesh = SurfaceTriangles;
    using Settings = SurfaceSettings;
    bind_settings(m, "CubeRange", "Cubes of the grid by their lowest node; ends excluded.",
                  field("x_begin", &CubeRange::x_begin), field("x_end", &CubeRange::x_end),
                  field("y_begin", &CubeRange::y_begin), field("y_end", &CubeRange::y_end));
    bind_settings(m, "SurfaceSettings", "Grid, kernels and limits of a surface.", field("node_m", &Settings::node_m),
                  field("kernel_m", &Settings::kernel_m), field("reach_m", &Settings::reach_m),
                  field("min_neighbours", &Settings::min_neighbours), field("min_close", &Settings::min_close),
                  field("sigma_residual_m", &Settings::sigma_residual_m),
                  field("sigma_normal", &Settings::sigma_normal), field("rounds", &Settings::rounds),
                  field("max_gap_m", &Settings::max_gap_m), field("cubes", &Settings::cubes));
    bind_answer(m, "SurfaceMesh",
                "Triangles (corners_m by nines) and the histograms of their labels, n_labels entries for each.",
                field("corners_m", &Mesh::corners_m), field("intensity", &Mesh::intensity),
                field("intensity_sigma", &Mesh::intensity_sigma), field("n_labels", &Mesh::n_labels),
                field("label", &Mesh::label), field("label_count", &Mesh::label_count));
    m.def("make_surface", surface_of, nb::kw_only(), nb::arg("thinned").noconvert(), nb::arg("position_m").noconvert(),
          nb::arg("normal").noconvert(), nb::arg("weight").noconvert(), nb::arg("settings"), nb::arg("threads"),
          "Triangles of the implicit surface.");
}

}  // namespace

void bind_surface(nb::module_& m) {
    bind_settings(m, "PlaneFit", "How planes are fitted around points.", field("kernel_m", &PlaneFit::kernel_m),
                  field("min_scale_m", &PlaneFit::min_scale_m), field("rounds", &PlaneFit::rounds));
    bind_settings(m, "Bilateral", "A filter over scores of points.", field("radius_m", &Bilateral::radius_m),
                  field("n_neighbours", &Bilateral::n_neighbours),
                  field("distance_weight", &Bilateral::distance_weight),
                  field("score_weight", &Bilateral::score_weight), field("score_range", &Bilateral::score_range));
    m.def("thin", thin_points, nb::arg("position_m").noconvert(), nb::arg("toward").noconvert(),
          nb::arg("intensity").noconvert(), nb::arg("label").noconvert(), nb::arg("voxel_m"), nb::arg("threads"),
          "Points summed over voxels: (thinned points as bytes, number of the one that each point went into).");
    m.def("merge_thinned", merged_thinned, nb::arg("thinned").noconvert(), nb::arg("threads"),
          "Thinned points of one voxel and label added up, in order.");
    m.def("fit_normals", normals_of, nb::arg("position_m").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("toward").noconvert(), nb::arg("fit"), nb::arg("threads"),
          "Unit normals of robust plane fits, on the side of toward.");
    m.def("local_spectra", spectra_of, nb::arg("position_m").noconvert(), nb::arg("radius_m"), nb::arg("threads"),
          "Ascending eigenvalues of the covariance within a radius of each point, and the number of points there.");
    m.def("smooth_scores", smoothed_scores, nb::arg("position_m").noconvert(), nb::arg("score").noconvert(),
          nb::arg("filter"), nb::arg("threads"), "Bilateral filter over scores of points.");
    bind_surface_mesh(m);
}

}  // namespace hedgerow
