// SPDX-License-Identifier: Apache-2.0
// What the element that stopped a ray gives to its return: shared by `fire`, `behind` and `fire_pulses`.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "trace/meet.hpp"

namespace hedgerow {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

struct Hit {
    float range_m;              // where the ray met the element; for a Gaussian its closest approach
    float spread_m;             // sigma of a Gaussian's returns; 0 for a surface
    const SurfaceNoise* noise;  // of a surface; nullptr for a Gaussian: it is in the spread already
    float intensity, intensity_sigma;
    float cosine;  // of the incidence angle; NaN for a Gaussian: a volume has no surface
    std::uint16_t label;
    std::int64_t element;

    float drawn_range_m(float normal) const {
        return range_m + (noise ? noise->sigma_m(cosine, range_m) : spread_m) * normal;
    }
    // NaN, for unknown, stays NaN.
    float drawn_intensity(float normal) const {
        const float drawn = intensity + intensity_sigma * normal;
        return drawn < 0 ? 0 : drawn;
    }
};

// Normals of placed triangles, which Embree gives in their own frame, turned into the world's.
template <int N>
void turn_normals(const Scene& scene, Rays<N>& rays) {
    for (int lane = 0; lane < N; ++lane) {
        const Placement* placement = scene.placement(rays.hit.instID[0][lane]);
        if (!placement) continue;
        const float local[3] = {rays.hit.Ng_x[lane], rays.hit.Ng_y[lane], rays.hit.Ng_z[lane]};
        const std::array<float, 3> normal = placement->normal_in_world(local);
        rays.hit.Ng_x[lane] = normal[0], rays.hit.Ng_y[lane] = normal[1], rays.hit.Ng_z[lane] = normal[2];
    }
}

// Cosines of the incidence angles, for all lanes at once, whatever they hit: one vector division instead of one each.
// Turns the normals of placed triangles into the world.
template <int N>
void incidence_cosines(const Scene& scene, Rays<N>& rays, Lanes<float, N>& out) {
    if (scene.n_placements() > 0) turn_normals<N>(scene, rays);
#pragma omp simd
    for (int lane = 0; lane < N; ++lane) {
        const float nx = rays.hit.Ng_x[lane], ny = rays.hit.Ng_y[lane], nz = rays.hit.Ng_z[lane];
        const float along = nx * rays.ray.dir_x[lane] + ny * rays.ray.dir_y[lane] + nz * rays.ray.dir_z[lane];
        const float cosine = std::fabs(along) / std::sqrt(nx * nx + ny * ny + nz * nz);
        out[lane] = cosine < 1.0f ? cosine : 1.0f;
    }
}

template <typename AnyRays>
bool is_hit(const AnyRays& rays, int lane) {
    return rays.hit.geomID[lane] != RTC_INVALID_GEOMETRY_ID;
}

// The label of an element: the placement's if that has one, else its own, or one drawn from those it was learned from.
template <typename Element>
std::uint16_t label_of(const Placement* placement, const Geometry& geometry, const Element& element,
                       std::uint32_t number, std::uint32_t key_a, std::uint64_t id) {
    if (!element.mixed || (placement && placement->label >= 0)) return label_under(placement, element.label);
    return geometry.label_mix.draw(number, label_number(key_a, id));
}

// What a lane that hit something met; key_a is the first Philox word of its ray.
template <typename AnyRays>
Hit hit_of(const Scene& scene, const AnyRays& rays, int lane, float cosine, std::uint32_t key_a) {
    const Placement* placement = scene.placement(rays.hit.instID[0][lane]);
    const Geometry& geometry = scene.geometry(placement, rays.hit.geomID[lane]);
    const unsigned primitive = rays.hit.primID[lane];
    const std::uint64_t first =
        (placement ? static_cast<std::uint64_t>(placement->first_element) : 0) + geometry.first_element;
    const float t = rays.ray.tfar[lane];
    if (geometry.kind == Geometry::Kind::mesh) {
        const Mesh& mesh = static_cast<const Mesh&>(geometry);
        const Finish& finish = mesh.finish(primitive);
        return {t,
                0.0f,
                &mesh.noise(finish),
                mesh.intensity(finish, cosine),
                finish.intensity_sigma,
                cosine,
                label_of(placement, geometry, finish, primitive, key_a, first + primitive),
                static_cast<std::int64_t>(first + primitive)};
    }
    const Gaussian& gaussian = static_cast<const Gaussians&>(geometry).elements[primitive];
    return {t,
            rays.hit.u[lane],
            nullptr,
            gaussian.intensity,
            gaussian.intensity_sigma,
            kUnknown,
            label_of(placement, geometry, gaussian, gaussian.number, key_a, first + gaussian.number),
            static_cast<std::int64_t>(first + gaussian.number)};
}

}  // namespace hedgerow
