// SPDX-License-Identifier: Apache-2.0
#include "fire.hpp"

#include <limits>

#include "meet.hpp"

namespace hedgerow {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

void write_miss(const ReturnArrays& out, std::size_t beam) {
    out.range_m[beam] = std::numeric_limits<float>::infinity();
    out.intensity[beam] = kNone;
    out.label[beam] = 0;
    out.element[beam] = -1;
    out.incidence_cosine[beam] = kNone;
}

// What the element that stopped a ray gives to its return.
struct Shade {
    std::uint32_t number;  // within its geometry
    std::uint16_t label;
    bool mixed;  // several labels: one is drawn
    float sigma_m, intensity, intensity_sigma, cosine;
};

Shade shade(const Gaussians& set, unsigned primitive, const RTCRayHit8& rays, int lane) {
    const Gaussian& gaussian = set.elements[primitive];
    return {gaussian.number,    gaussian.label,           gaussian.mixed, rays.hit.u[lane],
            gaussian.intensity, gaussian.intensity_sigma, kNone};
}

// Normals of placed triangles, which Embree gives in their own frame, turned into the world's.
void turn_normals(const Scene& scene, RTCRayHit8& rays) {
    for (int lane = 0; lane < kLanes; ++lane) {
        const Placement* placement = scene.placement(rays.hit.instID[0][lane]);
        if (!placement) continue;
        const float local[3] = {rays.hit.Ng_x[lane], rays.hit.Ng_y[lane], rays.hit.Ng_z[lane]};
        const std::array<float, 3> normal = placement->normal_in_world(local);
        rays.hit.Ng_x[lane] = normal[0], rays.hit.Ng_y[lane] = normal[1], rays.hit.Ng_z[lane] = normal[2];
    }
}

// Cosines of the incidence angles, for all lanes at once, whatever they hit: one vector division instead of eight.
void incidence_cosines(const RTCRayHit8& rays, Lanes<float>& out) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) {
        const float nx = rays.hit.Ng_x[lane], ny = rays.hit.Ng_y[lane], nz = rays.hit.Ng_z[lane];
        const float along = nx * rays.ray.dir_x[lane] + ny * rays.ray.dir_y[lane] + nz * rays.ray.dir_z[lane];
        const float cosine = std::fabs(along) / std::sqrt(nx * nx + ny * ny + nz * nz);
        out[lane] = cosine < 1.0f ? cosine : 1.0f;
    }
}

Shade shade(const Mesh& mesh, unsigned triangle, float cosine) {
    const Finish& finish = mesh.finish(triangle);
    return {triangle,
            finish.label,
            finish.mixed,
            mesh.sigma_m(finish, cosine),
            mesh.intensity(finish, cosine),
            finish.intensity_sigma,
            cosine};
}

std::uint16_t label_of(const Placement* placement, const Geometry& geometry, const Shade& shaded, std::uint32_t key_a,
                       std::uint64_t element) {
    if (placement && placement->label >= 0) return static_cast<std::uint16_t>(placement->label);
    return shaded.mixed ? geometry.label_mix.draw(shaded.number, label_number(key_a, element)) : shaded.label;
}

void write_return(const Scene& scene, const RTCRayHit8& rays, int lane, float cosine, const PacketRandom& random,
                  RangeLimits limits, const ReturnArrays& out, std::size_t beam) {
    if (rays.hit.geomID[lane] == RTC_INVALID_GEOMETRY_ID) return write_miss(out, beam);
    const Placement* placement = scene.placement(rays.hit.instID[0][lane]);
    const Geometry& geometry = scene.geometry(placement, rays.hit.geomID[lane]);
    const unsigned primitive = rays.hit.primID[lane];
    const Shade shaded = geometry.kind == Geometry::Kind::mesh
                             ? shade(static_cast<const Mesh&>(geometry), primitive, cosine)
                             : shade(static_cast<const Gaussians&>(geometry), primitive, rays, lane);
    const float range_m = rays.ray.tfar[lane] + shaded.sigma_m * random.normal[lane];
    // Stopped, but nearer or farther than the sensor can tell: nothing within the limits.
    if (!limits.contain(range_m)) return write_miss(out, beam);
    const std::uint64_t first = placement ? static_cast<std::uint64_t>(placement->first_element) : 0;
    const std::uint64_t element = first + geometry.first_element + shaded.number;
    out.range_m[beam] = range_m;
    const float intensity = shaded.intensity + shaded.intensity_sigma * random.second_normal[lane];
    out.intensity[beam] = intensity < 0 ? 0 : intensity;  // NaN, for unknown, stays NaN
    out.label[beam] = label_of(placement, geometry, shaded, random.key_a[lane], element);
    out.element[beam] = static_cast<std::int64_t>(element);
    out.incidence_cosine[beam] = shaded.cosine;
}

void fire_chunk(const Scene& scene, RTCScene embree, const BeamArrays& beams, Chunk chunk, RangeLimits limits,
                std::uint64_t seed, const ReturnArrays& out) {
    const Packets packets(beams, chunk);
    Lanes<float> far_m;
    for (float& far : far_m.at) far = limits.max_m;
    PacketRandom random;
    PacketContext context(scene);
    context.coins = &random;
    RTCRayHit8 rays = fresh_rays();
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const Packet packet = packets[i];
        load_rays(beams, packet, far_m, rays);
        Lanes<std::uint64_t> pulse;
        for (int lane = 0; lane < kLanes; ++lane)
            pulse[lane] = static_cast<std::uint64_t>(beams.pulse[packet.beam[lane]]);
        for (std::uint64_t& nearest : context.nearest.at) nearest = ~std::uint64_t{0};
        random.draw(seed, pulse, 0);
        packets.prefetch(beams, i + 1);
        intersect8(packet.valid, embree, context, rays);
        Lanes<float> cosine;
        if (scene.n_placements() > 0) turn_normals(scene, rays);
        incidence_cosines(rays, cosine);
        for (int lane = 0; lane < packet.count; ++lane)
            write_return(scene, rays, lane, cosine[lane], random, limits, out, packet.beam[lane]);
    }
}

}  // namespace

void fire(Scene& scene, const BeamArrays& beams, RangeLimits limits, std::uint64_t seed, int threads, const Tick& tick,
          const ReturnArrays& out) {
    const RTCScene embree = scene.embree(Purpose::fire);
    for_chunks(beams, threads, tick, [&](Chunk chunk) { fire_chunk(scene, embree, beams, chunk, limits, seed, out); });
}

}  // namespace hedgerow
