// SPDX-License-Identifier: Apache-2.0
// Robust implicit moving least squares (Oztireli, Guennebaud and Gross 2009): the signed distance of a place from a
// surface through points with normals, positive on the side the normals point to.
// Equations: docs/models.md §10.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/lanes.hpp"
#include "learn/nearby.hpp"
#include "learn/surface.hpp"

namespace hedgerow {

struct GridNode {
    float value = std::numeric_limits<float>::quiet_NaN();  // NaN where fewer points than wanted are within reach
    bool close = false;                                     // whether the kernel alone holds enough of them
};

// The neighbours of one node and their sums.
class Rimls {
  public:
    // The node at a place relative to the centre of what is nearby.
    GridNode node(Nearby& nearby, const float at[3], const SurfacePoints& points, const SurfaceSettings& settings) {
        const auto reached = nearby.within(at, settings.reach_m);
        if (reached.size() < settings.min_neighbours) return {};
        std::size_t n_close = 0;
        const float limit = settings.kernel_m * settings.kernel_m;
        for (const std::uint32_t i : reached) n_close += nearby.squared_distance(i) < limit;
        const bool close = n_close >= settings.min_neighbours;
        const float radius = close ? settings.kernel_m : settings.reach_m;
        load(nearby, reached, at, points, radius);
        float value = 0, gradient[3] = {};
        for (int round = 0; round <= settings.rounds; ++round) {
            const float before = value;
            if (round > 0) reweigh(value, gradient, settings);
            sum(value, gradient, radius);
            if (round > 0 && std::abs(value - before) < 1e-5f) break;  // metres: far below what a node spacing resolves
        }
        return {value, close};
    }

  private:
    void load(const Nearby& nearby, std::span<const std::uint32_t> reached, const float at[3],
              const SurfacePoints& points, float radius_m) {
        const float limit = radius_m * radius_m;
        for (auto* column : {&x_, &y_, &z_, &nx_, &ny_, &nz_, &height_, &share_, &weight_})
            column->resize(reached.size());
        std::size_t n = 0;
        for (const std::uint32_t i : reached) {
            if (!(nearby.squared_distance(i) < limit)) continue;
            const std::size_t point = nearby.number[i];
            x_[n] = at[0] - nearby.x[i], y_[n] = at[1] - nearby.y[i], z_[n] = at[2] - nearby.z[i];
            nx_[n] = points.normal[3 * point], ny_[n] = points.normal[3 * point + 1],
            nz_[n] = points.normal[3 * point + 2];
            height_[n] = x_[n] * nx_[n] + y_[n] * ny_[n] + z_[n] * nz_[n];
            share_[n] = weight_[n] = nearby.weight[i];
            ++n;
        }
        n_ = n;
    }

    // Points whose plane or normal disagrees with the surface so far lose weight (their eq. 13).
    void reweigh(float value, const float gradient[3], const SurfaceSettings& settings) {
        const float by_residual = -1 / (settings.sigma_residual_m * settings.sigma_residual_m);
        const float by_normal = -1 / (settings.sigma_normal * settings.sigma_normal);
        const float gx = gradient[0], gy = gradient[1], gz = gradient[2];
        const float *nx = nx_.data(), *ny = ny_.data(), *nz = nz_.data(), *height = height_.data(),
                    *share = share_.data();
        float* weight = weight_.data();
#pragma omp simd
        for (std::size_t i = 0; i < n_; ++i) {
            const float r = height[i] - value, a = nx[i] - gx, b = ny[i] - gy, c = nz[i] - gz;
            weight[i] = share[i] * soft_exp(r * r * by_residual + (a * a + b * b + c * c) * by_normal);
        }
    }

    // Value and gradient under the present weights, times the spatial kernel (1 - d^2/h^2)^4.
    void sum(float& value, float gradient[3], float radius_m) {
        const float inverse = 1 / (radius_m * radius_m);
        const float *x = x_.data(), *y = y_.data(), *z = z_.data(), *nx = nx_.data(), *ny = ny_.data(),
                    *nz = nz_.data();
        const float *height = height_.data(), *weight = weight_.data();
        float w = 0, wf = 0, sx = 0, sy = 0, sz = 0;           // weights, weighted heights and normals
        float gx = 0, gy = 0, gz = 0, fx = 0, fy = 0, fz = 0;  // gradients of the weights, and times heights
#pragma omp simd reduction(+ : w, wf, sx, sy, sz, gx, gy, gz, fx, fy, fz)
        for (std::size_t i = 0; i < n_; ++i) {
            const float rest = std::max(0.0f, 1 - (x[i] * x[i] + y[i] * y[i] + z[i] * z[i]) * inverse);
            const float cubed = weight[i] * rest * rest * rest, own = cubed * rest, slope = -8 * inverse * cubed;
            w += own, wf += own * height[i];
            sx += own * nx[i], sy += own * ny[i], sz += own * nz[i];
            gx += slope * x[i], gy += slope * y[i], gz += slope * z[i];
            fx += slope * x[i] * height[i], fy += slope * y[i] * height[i], fz += slope * z[i] * height[i];
        }
        if (!(w > 0)) return;  // all weights underflow: the round before is the best there is
        value = wf / w;
        gradient[0] = (fx - value * gx + sx) / w;
        gradient[1] = (fy - value * gy + sy) / w;
        gradient[2] = (fz - value * gz + sz) / w;
    }

    std::vector<float> x_, y_, z_, nx_, ny_, nz_, height_, share_, weight_;
    std::size_t n_ = 0;
};

}  // namespace hedgerow
