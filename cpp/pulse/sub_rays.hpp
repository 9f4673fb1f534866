// SPDX-License-Identifier: Apache-2.0
// Where the sub-rays of pulses go: the axes of a block of pulses, and packets of their sub-rays aimed from them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "trace/batch.hpp"

namespace hedgerow {

// Where the sub-rays go: points of the unit spot, which is the square from -1 to 1 or the disk of radius 1.
struct Spot {
    std::vector<float> points;  // 2 per sub-ray (left, up); empty if drawn
    // 4 per sub-ray: the cell to draw a point of: two intervals of left and of up, or in the round spot of the squared
    // radius and of the angle in turns.
    std::vector<float> cells;
    std::vector<float> share;  // of the pulse's light
    bool round;
    std::array<float, 2> half_m;   // half the width (left, up) where the light leaves the sensor
    std::array<float, 2> tangent;  // of half the divergence
    float part_sigma;              // of a sub-ray's part of the unit spot, along any axis

    int size() const { return static_cast<int>(share.size()); }
};

// Stream of the random numbers that places in the spot are drawn with.
constexpr std::uint32_t kStencilStream = 2;

constexpr std::size_t kBlock = 64;  // pulses traced before their light is received: whole packets for any stencil

// The pulses of a block in the scene's frame, by columns: packets gather their lanes from them.
struct Axes {
    float origin[3][kBlock], forward[3][kBlock], left[3][kBlock], up[3][kBlock];
    std::uint64_t pulse[kBlock];
    std::size_t beam[kBlock];

    void set(std::size_t i, const BeamArrays& beams, std::size_t from) {
        float d[3];
        for (int axis = 0; axis < 3; ++axis) {
            origin[axis][i] = static_cast<float>(beams.origin_m[3 * from + axis] - beams.scene_origin_m[axis]);
            d[axis] = forward[axis][i] = beams.direction[3 * from + axis];
        }
        // Left is horizontal, up perpendicular to it and to the beam; straight up or down the y axis serves as left.
        const float flat = std::sqrt(d[0] * d[0] + d[1] * d[1]);
        const bool steep = flat < 1e-6f;
        const float x = steep ? 0 : -d[1] / flat, y = steep ? 1 : d[0] / flat;
        left[0][i] = x, left[1][i] = y, left[2][i] = 0;
        up[0][i] = -d[2] * y, up[1][i] = d[2] * x, up[2][i] = d[0] * y - d[1] * x;
        pulse[i] = static_cast<std::uint64_t>(beams.pulse[from]);
        beam[i] = from;
    }
};

// Which sub-rays of which pulses are in a packet.
struct SubRays {
    Lanes<std::int32_t> at;  // the pulse's place in the block
    Lanes<std::uint64_t> pulse;
    Lanes<std::uint32_t> number;
    alignas(32) int valid[kLanes];
};

// Points of the unit spot, drawn from the sub-rays' cells.
inline void draw_points(const Spot& spot, const SubRays& sub_rays, std::uint64_t seed, Lanes<float>& left,
                        Lanes<float>& up) {
    for (int lane = 0; lane < kLanes; ++lane) {
        const Words4 words = philox(seed, sub_rays.pulse[lane], sub_rays.number[lane], kStencilStream);
        const float* cell = &spot.cells[4 * sub_rays.number[lane]];
        const float a = cell[0] + (cell[1] - cell[0]) * open_unit(words.at[0]);
        const float b = cell[2] + (cell[3] - cell[2]) * open_unit(words.at[1]);
        if (!spot.round) {
            left[lane] = a, up[lane] = b;
            continue;
        }
        const float radius = std::sqrt(a), turns = b - std::floor(b);
        const float sine_turns = turns < 0.25f ? turns + 0.75f : turns - 0.25f;  // sin(x) = cos(x - 1/4 turn)
        left[lane] = radius * cos_turns(turns);
        up[lane] = radius * cos_turns(sine_turns);
    }
}

// Sets a packet to sub-rays that end at far_m of their pulse.
//
// A tilted ray starts where the aperture has the point that the spot has at 1 m. The axis stays exactly what it is.
inline void aim(const Spot& spot, const Axes& axes, const SubRays& sub_rays, std::uint64_t seed, const float* far_m,
                RTCRayHit8& rays) {
    Lanes<float> left, up;
    if (spot.cells.empty()) {
        for (int lane = 0; lane < kLanes; ++lane) {
            left[lane] = spot.points[2 * sub_rays.number[lane]];
            up[lane] = spot.points[2 * sub_rays.number[lane] + 1];
        }
    } else {
        draw_points(spot, sub_rays, seed, left, up);
    }
    float* const origins[3] = {rays.ray.org_x, rays.ray.org_y, rays.ray.org_z};
    float* const directions[3] = {rays.ray.dir_x, rays.ray.dir_y, rays.ray.dir_z};
    Lanes<float> across, above, tilt_left, tilt_up, scale;
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) {
        across[lane] = spot.half_m[0] * left[lane];
        above[lane] = spot.half_m[1] * up[lane];
        tilt_left[lane] = spot.tangent[0] * left[lane];
        tilt_up[lane] = spot.tangent[1] * up[lane];
        scale[lane] = 1 / std::sqrt(1 + tilt_left[lane] * tilt_left[lane] + tilt_up[lane] * tilt_up[lane]);
    }
    for (int axis = 0; axis < 3; ++axis) {
        float* const origin = origins[axis];
        float* const direction = directions[axis];
#pragma omp simd
        for (int lane = 0; lane < kLanes; ++lane) {
            const std::int32_t i = sub_rays.at[lane];
            const float l = axes.left[axis][i], u = axes.up[axis][i];
            origin[lane] = axes.origin[axis][i] + (across[lane] * l + above[lane] * u);
            direction[lane] =
                traceable(scale[lane] * (axes.forward[axis][i] + (tilt_left[lane] * l + tilt_up[lane] * u)));
        }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
        rays.ray.tfar[lane] = far_m[sub_rays.at[lane]];
        rays.ray.mask[lane] = static_cast<unsigned>(Answer::sub_ray);
        rays.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
        rays.hit.instID[0][lane] = RTC_INVALID_GEOMETRY_ID;
    }
}

// Sets a packet to the axes of pulses from `first` on of a block; lanes past the end repeat the last one.
inline void aim_axes(const Axes& axes, std::size_t first, std::size_t n_pulses, float far_m, SubRays& sub_rays,
                     RTCRayHit8& rays) {
    for (int lane = 0; lane < kLanes; ++lane) {
        const std::size_t i = std::min(first + static_cast<std::size_t>(lane), n_pulses - 1);
        sub_rays.at[lane] = static_cast<std::int32_t>(i);
        sub_rays.pulse[lane] = axes.pulse[i];
        sub_rays.number[lane] = 0;
        sub_rays.valid[lane] = first + static_cast<std::size_t>(lane) < n_pulses ? -1 : 0;
        rays.ray.org_x[lane] = axes.origin[0][i], rays.ray.dir_x[lane] = traceable(axes.forward[0][i]);
        rays.ray.org_y[lane] = axes.origin[1][i], rays.ray.dir_y[lane] = traceable(axes.forward[1][i]);
        rays.ray.org_z[lane] = axes.origin[2][i], rays.ray.dir_z[lane] = traceable(axes.forward[2][i]);
        rays.ray.tfar[lane] = far_m;
        rays.ray.mask[lane] = static_cast<unsigned>(Answer::pulse);
        rays.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
        rays.hit.instID[0][lane] = RTC_INVALID_GEOMETRY_ID;
    }
}

// Calls work(sub_rays, count, first) for packets of all sub-rays of a block's pulses; first: the number of the packet's
// first sub-ray, through all pulses.
template <typename Work>
void for_sub_rays(const Axes& axes, std::size_t n_pulses, const Spot& spot, Work&& work) {
    const auto s = static_cast<std::size_t>(spot.size());
    const std::size_t n = n_pulses * s;
    SubRays sub_rays;
    std::size_t pulse = 0;
    std::uint32_t number = 0;
    for (std::size_t first = 0; first < n; first += kLanes) {
        const int count = static_cast<int>(std::min<std::size_t>(kLanes, n - first));
        for (int lane = 0; lane < kLanes; ++lane) {
            sub_rays.at[lane] = static_cast<std::int32_t>(pulse);
            sub_rays.pulse[lane] = axes.pulse[pulse];
            sub_rays.number[lane] = number;
            sub_rays.valid[lane] = lane < count ? -1 : 0;
            if (lane + 1 >= count) continue;  // lanes past the end repeat the last sub-ray
            if (++number == s) ++pulse, number = 0;
        }
        if (++number == s) ++pulse, number = 0;
        work(sub_rays, count, first);
    }
}

// Throws where axes and sub-rays meet different elements but Embree cannot tell them apart.
void require_masks(const Scene& scene);

}  // namespace hedgerow
