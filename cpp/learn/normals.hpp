// SPDX-License-Identifier: Apache-2.0
// The shape of the neighbourhood of each point: robust normals, eigenvalues, smoothed scores.
// Equations: docs/models.md §10 and §12.
#pragma once

#include <cstdint>
#include <span>

namespace hedgerow {

struct PlaneFit {
    float kernel_m;     // only points within it count, near ones more
    float min_scale_m;  // residuals below are never outliers
    int rounds;         // of reweighting
};

// Normals of weighted robust plane fits, on the side of `toward`; 3 per point each.
void fit_normals(std::span<const double> position_m, std::span<const float> weight, std::span<const float> toward,
                 const PlaneFit& fit, int threads, std::span<float> normal);

// Ascending eigenvalues of the covariance of all points within the radius (3 per point), and how many those are.
void local_spectra(std::span<const double> position_m, float radius_m, int threads, std::span<float> eigenvalue,
                   std::span<std::uint32_t> count);

struct Bilateral {
    float radius_m;
    std::uint32_t n_neighbours;  // the nearest of those within the radius, the point itself included
    float distance_weight;       // of (distance / radius)^2
    float score_weight;          // of (difference of scores / score_range)^2
    float score_range;
};

// Scores averaged over neighbours with weights that fall with distance and with difference (Browning 2012 eq. 7 and 8).
void smooth_scores(std::span<const double> position_m, std::span<const float> score, const Bilateral& filter,
                   int threads, std::span<float> smoothed);

}  // namespace hedgerow
