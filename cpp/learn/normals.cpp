// SPDX-License-Identifier: Apache-2.0
#include "learn/normals.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/lanes.hpp"
#include "learn/nearby.hpp"
#include "learn/symmetric.hpp"

namespace hedgerow {
namespace {

// Weighted mean and covariance.
struct Moments {
    float weight;
    float mean[3];
    Symmetric covariance;
};

// Neighbours of one point, relative to it.
struct Patch {
    std::vector<float> x, y, z, base, weight, residual;

    void load(const Nearby& nearby, std::span<const std::uint32_t> picked, const float at[3]) {
        for (auto* column : {&x, &y, &z, &base, &weight, &residual}) column->resize(picked.size());
        for (std::size_t i = 0; i < picked.size(); ++i) {
            base[i] = weight[i] = nearby.weight[picked[i]];
            x[i] = nearby.x[picked[i]] - at[0];
            y[i] = nearby.y[picked[i]] - at[1];
            z[i] = nearby.z[picked[i]] - at[2];
        }
    }

    Moments moments() const {
        const std::size_t n = x.size();
        const float *px = x.data(), *py = y.data(), *pz = z.data(), *pw = weight.data();
        float w = 0, wx = 0, wy = 0, wz = 0, xx = 0, xy = 0, xz = 0, yy = 0, yz = 0, zz = 0;
#pragma omp simd reduction(+ : w, wx, wy, wz, xx, xy, xz, yy, yz, zz)
        for (std::size_t i = 0; i < n; ++i) {
            const float a = pw[i] * px[i], b = pw[i] * py[i], c = pw[i] * pz[i];
            w += pw[i];
            wx += a, wy += b, wz += c;
            xx += a * px[i], xy += a * py[i], xz += a * pz[i];
            yy += b * py[i], yz += b * pz[i], zz += c * pz[i];
        }
        const double s = 1.0 / w, mx = wx * s, my = wy * s, mz = wz * s;
        return {w,
                {static_cast<float>(mx), static_cast<float>(my), static_cast<float>(mz)},
                {xx * s - mx * mx, xy * s - mx * my, xz * s - mx * mz, yy * s - my * my, yz * s - my * mz,
                 zz * s - mz * mz}};
    }

    void weigh_by_distance(float kernel_m) {
        const std::size_t n = x.size();
        const float inverse = 1 / (kernel_m * kernel_m);
        const float *px = x.data(), *py = y.data(), *pz = z.data();
        float *pb = base.data(), *pw = weight.data();
#pragma omp simd
        for (std::size_t i = 0; i < n; ++i) {
            const float rest = std::max(0.0f, 1 - (px[i] * px[i] + py[i] * py[i] + pz[i] * pz[i]) * inverse);
            pw[i] = pb[i] *= rest * rest * rest * rest;
        }
    }

    // Tukey's biweight of the distance to the plane. The scale is that of a normal distribution with the residuals'
    // weighted mean magnitude, under the weights of the round before, so it shrinks as outliers lose weight.
    void weigh_by_residual(const Moments& plane, const double normal[3], float min_scale_m) {
        constexpr float kTukey = 4.685f, kMeanToSigma = 1.2533f;  // 95 % efficiency; sqrt(pi / 2)
        const std::size_t n = x.size();
        const float nx = static_cast<float>(normal[0]), ny = static_cast<float>(normal[1]),
                    nz = static_cast<float>(normal[2]);
        const float offset = nx * plane.mean[0] + ny * plane.mean[1] + nz * plane.mean[2];
        const float *px = x.data(), *py = y.data(), *pz = z.data(), *pb = base.data();
        float *pw = weight.data(), *pr = residual.data();
        float magnitude = 0;
#pragma omp simd reduction(+ : magnitude)
        for (std::size_t i = 0; i < n; ++i) {
            pr[i] = nx * px[i] + ny * py[i] + nz * pz[i] - offset;
            magnitude += pw[i] * std::abs(pr[i]);
        }
        const float scale = kTukey * std::max(min_scale_m, kMeanToSigma * magnitude / plane.weight);
        const float inverse = 1 / (scale * scale);
#pragma omp simd
        for (std::size_t i = 0; i < n; ++i) {
            const float rest = std::max(0.0f, 1 - pr[i] * pr[i] * inverse);
            pw[i] = pb[i] * rest * rest;
        }
    }
};

constexpr double kSettled = 1 - 5e-7;  // cosine of a milliradian

struct ByDistance {
    std::vector<std::pair<float, std::uint32_t>> nearest;
};

}  // namespace

void fit_normals(std::span<const double> position_m, std::span<const float> weight, std::span<const float> toward,
                 const PlaneFit& fit, int threads, std::span<float> normal) {
    on_threads(threads, [&] {
        const CellGrid grid(position_m, fit.kernel_m);
        for_points<Patch>(grid, position_m, weight,
                          [&](Patch& patch, Nearby& nearby, std::uint32_t point, const float at[3]) {
                              const auto picked = nearby.within(at, fit.kernel_m);
                              patch.load(nearby, picked, at);
                              patch.weigh_by_distance(fit.kernel_m);
                              const float* t = &toward[3 * std::size_t{point}];
                              const double to_sensor[3] = {t[0], t[1], t[2]};
                              double axis[3] = {}, before[3];
                              for (int round = 0;; ++round) {
                                  std::copy_n(axis, 3, before);
                                  const Moments plane = patch.moments();
                                  flattest_axis(plane.covariance, spectrum(plane.covariance), to_sensor, axis);
                                  if (dot(axis, before) > kSettled) break;
                                  if (round == fit.rounds || picked.size() < 4)
                                      break;  // three points define their plane: no outliers
                                  patch.weigh_by_residual(plane, axis, fit.min_scale_m);
                              }
                              for (int i = 0; i < 3; ++i)
                                  normal[3 * std::size_t{point} + i] = static_cast<float>(axis[i]);
                          });
    });
}

void local_spectra(std::span<const double> position_m, float radius_m, int threads, std::span<float> eigenvalue,
                   std::span<std::uint32_t> count) {
    on_threads(threads, [&] {
        const CellGrid grid(position_m, radius_m);
        const std::vector<float> weight(position_m.size() / 3, 1.0f);
        for_points<Patch>(
            grid, position_m, weight, [&](Patch& patch, Nearby& nearby, std::uint32_t point, const float at[3]) {
                const auto picked = nearby.within(at, radius_m);
                patch.load(nearby, picked, at);
                const Spectrum found = spectrum(patch.moments().covariance);
                for (int i = 0; i < 3; ++i)
                    eigenvalue[3 * std::size_t{point} + i] = static_cast<float>(std::max(0.0, found.value[i]));
                count[point] = static_cast<std::uint32_t>(picked.size());
            });
    });
}

void smooth_scores(std::span<const double> position_m, std::span<const float> score, const Bilateral& filter,
                   int threads, std::span<float> smoothed) {
    const float by_distance = -filter.distance_weight / (filter.radius_m * filter.radius_m);
    const float by_score = -filter.score_weight / (filter.score_range * filter.score_range);
    on_threads(threads, [&] {
        const CellGrid grid(position_m, filter.radius_m);
        for_points<ByDistance>(
            grid, position_m, score, [&](ByDistance& found, Nearby& nearby, std::uint32_t point, const float at[3]) {
                auto& nearest = found.nearest;
                nearest.clear();
                for (const std::uint32_t i : nearby.within(at, filter.radius_m))
                    nearest.emplace_back(nearby.squared_distance(i), i);
                if (nearest.size() > filter.n_neighbours) {
                    std::nth_element(nearest.begin(), nearest.begin() + filter.n_neighbours, nearest.end());
                    nearest.resize(filter.n_neighbours);
                    // nth_element leaves an order of its own, which sums must not depend on.
                    std::sort(nearest.begin(), nearest.end());
                }
                float sum = 0, weights = 0;
                for (const auto& [squared, i] : nearest) {
                    const float other = nearby.weight[i], difference = other - score[point];
                    const float w = soft_exp(by_distance * squared + by_score * difference * difference);
                    sum += w * other;
                    weights += w;
                }
                smoothed[point] = sum / weights;
            });
    });
}

}  // namespace hedgerow
