// SPDX-License-Identifier: Apache-2.0
#include "fire.hpp"

#include <limits>

#include "shade.hpp"

namespace hedgerow {
namespace {

void write_miss(const ReturnArrays& out, std::size_t beam) {
    out.range_m[beam] = std::numeric_limits<float>::infinity();
    out.intensity[beam] = kUnknown;
    out.label[beam] = 0;
    out.element[beam] = -1;
    out.incidence_cosine[beam] = kUnknown;
}

void write_return(const Scene& scene, const RTCRayHit8& rays, int lane, float cosine, const PacketRandom& random,
                  RangeLimits limits, const ReturnArrays& out, std::size_t beam) {
    if (!is_hit(rays, lane)) return write_miss(out, beam);
    const Hit hit = hit_of(scene, rays, lane, cosine, random.key_a[lane]);
    const float range_m = hit.drawn_range_m(random.normal[lane]);
    // Stopped, but nearer or farther than the sensor can tell: nothing within the limits.
    if (!limits.contain(range_m)) return write_miss(out, beam);
    out.range_m[beam] = range_m;
    out.intensity[beam] = hit.drawn_intensity(random.second_normal[lane]);
    out.label[beam] = hit.label;
    out.element[beam] = hit.element;
    out.incidence_cosine[beam] = hit.cosine;
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
        random.draw(seed, pulse);
        packets.prefetch(beams, i + 1);
        intersect8(packet.valid, embree, context, rays);
        write_returns(scene, rays, packet, random, limits, out);
    }
}

}  // namespace

void write_returns(const Scene& scene, RTCRayHit8& rays, const Packet& packet, const PacketRandom& random,
                   RangeLimits limits, const ReturnArrays& out) {
    Lanes<float> cosine;
    incidence_cosines(scene, rays, cosine);
    for (int lane = 0; lane < packet.count; ++lane)
        write_return(scene, rays, lane, cosine[lane], random, limits, out, packet.beam[lane]);
}

void fire(Scene& scene, const BeamArrays& beams, RangeLimits limits, std::uint64_t seed, int threads, const Tick& tick,
          const ReturnArrays& out) {
    const RTCScene embree = scene.embree(Purpose::fire);
    for_chunks(beams, threads, tick, [&](Chunk chunk) { fire_chunk(scene, embree, beams, chunk, limits, seed, out); });
}

}  // namespace hedgerow
