// SPDX-License-Identifier: Apache-2.0
// Bindings for points and their surroundings: thinning, normals, classification scores, surfaces.
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <vector>

#include "bind.hpp"
#include "normals.hpp"
#include "surface.hpp"
#include "thin.hpp"

namespace hedgerow {
namespace {

template <typename T>
Fresh<T> copied(const std::vector<T>& from) {
    Fresh<T> out(from.size());
    std::ranges::copy(from, out.values.begin());
    return out;
}

nb::object grain_rows(const std::vector<Grain>& grains) {
    const Fresh<std::uint8_t> out(grains.size(), sizeof(Grain));
    if (!grains.empty()) std::memcpy(out.values.data(), grains.data(), out.values.size());
    return out.array;
}

std::span<const Grain> grains_of(const AnyArray& rows, std::ptrdiff_t n) {
    const auto bytes = values<std::uint8_t>(rows, "grains", n, sizeof(Grain));
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Grain) != 0)
        throw nb::type_error("grains: not aligned");
    return {reinterpret_cast<const Grain*>(bytes.data()), bytes.size() / sizeof(Grain)};
}

auto thin_points(const AnyArray& position_m, const AnyArray& toward, const AnyArray& intensity, const AnyArray& label,
                 double voxel_m, int threads) {
    const auto labels = values<std::uint16_t>(label, "label", -1);
    const auto n = static_cast<std::ptrdiff_t>(labels.size());
    const PointArrays points{values<double>(position_m, "position_m", n, 3), values<float>(toward, "toward", n, 3),
                             values<float>(intensity, "intensity", n), labels};
    const Fresh<std::uint32_t> grain_of(labels.size());
    std::vector<Grain> grains;
    {
        nb::gil_scoped_release release;
        grains = thin(points, voxel_m, threads, grain_of.values);
    }
    return std::make_tuple(grain_rows(grains), grain_of.column());
}

auto merged_grains(const AnyArray& grains, int threads) {
    const auto rows = grains_of(grains, -1);
    std::vector<Grain> merged;
    {
        nb::gil_scoped_release release;
        merged = merge_grains(rows, threads);
    }
    return grain_rows(merged);
}

auto normals_of(const AnyArray& position_m, const AnyArray& weight, const AnyArray& toward, float kernel_m,
                float min_scale_m, int rounds, int threads) {
    const auto weights = values<float>(weight, "weight", -1);
    const auto n = static_cast<std::ptrdiff_t>(weights.size());
    const auto positions = values<double>(position_m, "position_m", n, 3);
    const auto towards = values<float>(toward, "toward", n, 3);
    const Fresh<float> normal(weights.size(), 3);
    {
        nb::gil_scoped_release release;
        fit_normals(positions, weights, towards, {kernel_m, min_scale_m, rounds}, threads, normal.values);
    }
    return normal.rows3();
}

auto spectra_of(const AnyArray& position_m, float radius_m, int threads) {
    const auto positions = values<double>(position_m, "position_m", -1, 3);
    const Fresh<float> eigenvalue(positions.size() / 3, 3);
    const Fresh<std::uint32_t> count(positions.size() / 3);
    {
        nb::gil_scoped_release release;
        local_spectra(positions, radius_m, threads, eigenvalue.values, count.values);
    }
    return std::make_tuple(eigenvalue.rows3(), count.column());
}

auto smoothed_scores(const AnyArray& position_m, const AnyArray& score, float radius_m, std::uint32_t n_neighbours,
                     float distance_weight, float score_weight, float score_range, int threads) {
    const auto scores = values<float>(score, "score", -1);
    const auto positions = values<double>(position_m, "position_m", static_cast<std::ptrdiff_t>(scores.size()), 3);
    const Fresh<float> smoothed(scores.size());
    {
        nb::gil_scoped_release release;
        smooth_scores(positions, scores, {radius_m, n_neighbours, distance_weight, score_weight, score_range}, threads,
                      smoothed.values);
    }
    return smoothed.column();
}

auto surface_of(const AnyArray& grains, const AnyArray& position_m, const AnyArray& normal, const AnyArray& weight,
                double node_m, float kernel_m, float reach_m, std::uint32_t min_neighbours, std::uint32_t min_close,
                float sigma_residual_m, float sigma_normal, int rounds, float max_gap_m,
                std::array<std::int64_t, 4> cubes, int threads) {
    const auto rows = grains_of(grains, -1);
    const auto n = static_cast<std::ptrdiff_t>(rows.size());
    const SurfacePoints points{values<double>(position_m, "position_m", n, 3), values<float>(normal, "normal", n, 3),
                               values<float>(weight, "weight", n), rows};
    const SurfaceSettings settings{node_m,           kernel_m,     reach_m, min_neighbours, min_close,
                                   sigma_residual_m, sigma_normal, rounds,  max_gap_m,      cubes};
    SurfaceMesh mesh;
    {
        nb::gil_scoped_release release;
        mesh = make_surface(points, settings, threads);
    }
    return std::make_tuple(copied(mesh.corners_m).column(), copied(mesh.intensity).column(),
                           copied(mesh.intensity_sigma).column(), copied(mesh.n_labels).column(),
                           copied(mesh.label).column(), copied(mesh.label_count).column());
}

}  // namespace

void bind_surface(nb::module_& m) {
    m.def("thin", thin_points, nb::arg("position_m").noconvert(), nb::arg("toward").noconvert(),
          nb::arg("intensity").noconvert(), nb::arg("label").noconvert(), nb::arg("voxel_m"), nb::arg("threads"),
          "Points summed over voxels: (grains as bytes, grain of each point).");
    m.def("merge_grains", merged_grains, nb::arg("grains").noconvert(), nb::arg("threads"),
          "Grains of one voxel and label added up, in order.");
    m.def("fit_normals", normals_of, nb::arg("position_m").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("toward").noconvert(), nb::arg("kernel_m"), nb::arg("min_scale_m"), nb::arg("rounds"),
          nb::arg("threads"), "Unit normals of robust plane fits, on the side of toward.");
    m.def("local_spectra", spectra_of, nb::arg("position_m").noconvert(), nb::arg("radius_m"), nb::arg("threads"),
          "Ascending eigenvalues of the covariance within a radius of each point, and the number of points there.");
    m.def("smooth_scores", smoothed_scores, nb::arg("position_m").noconvert(), nb::arg("score").noconvert(),
          nb::arg("radius_m"), nb::arg("n_neighbours"), nb::arg("distance_weight"), nb::arg("score_weight"),
          nb::arg("score_range"), nb::arg("threads"), "Bilateral filter over scores of points.");
    m.def("make_surface", surface_of, nb::arg("grains").noconvert(), nb::arg("position_m").noconvert(),
          nb::arg("normal").noconvert(), nb::arg("weight").noconvert(), nb::arg("node_m"), nb::arg("kernel_m"),
          nb::arg("reach_m"), nb::arg("min_neighbours"), nb::arg("min_close"), nb::arg("sigma_residual_m"),
          nb::arg("sigma_normal"), nb::arg("rounds"), nb::arg("max_gap_m"), nb::arg("cubes"), nb::arg("threads"),
          "Triangles of the implicit surface: (corners_m by nines, intensity, intensity_sigma, n_labels, label, "
          "label_count): the last two are histograms, n_labels entries for each triangle.");
}

}  // namespace hedgerow
