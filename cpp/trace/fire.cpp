// SPDX-License-Identifier: Apache-2.0
#include "trace/fire.hpp"

#include <limits>

#include "trace/shade.hpp"

namespace hedgerow {
namespace {

void write_miss(const ReturnArrays& out, std::size_t beam) {
    out.range_m[beam] = std::numeric_limits<float>::infinity();
    out.intensity[beam] = kUnknown;
    out.label[beam] = 0;
    out.element[beam] = -1;
    out.incidence_cosine[beam] = kUnknown;
}

template <int N>
void write_return(const Scene& scene, const Rays<N>& rays, int lane, float cosine, const PacketRandom<N>& random,
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

template <int N>
void fire_packets(const Scene& scene, RTCScene embree, const BeamArrays& beams, const Packets<N>& packets,
                  RangeLimits limits, std::uint64_t seed, const ReturnArrays& out) {
    Lanes<float, N> far_m;
    for (float& far : far_m.at) far = limits.max_m;
    PacketRandom<N> random;
    PacketContext<N> context(scene);
    context.coins = &random;
    Rays<N> rays = fresh_rays<N>();
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const Packet<N> packet = packets[i];
        load_rays(beams, packet, far_m, rays);
        Lanes<std::uint64_t, N> pulse;
        for (int lane = 0; lane < N; ++lane) pulse[lane] = static_cast<std::uint64_t>(beams.pulse[packet.beam[lane]]);
        for (std::uint64_t& nearest : context.nearest.at) nearest = ~std::uint64_t{0};
        random.draw(seed, pulse);
        packets.prefetch(beams, i + 1);
        intersect(packet.valid, embree, context, rays);
        write_returns(scene, rays, packet, random, limits, out);
    }
}

}  // namespace

template <int N>
void write_returns(const Scene& scene, Rays<N>& rays, const Packet<N>& packet, const PacketRandom<N>& random,
                   RangeLimits limits, const ReturnArrays& out) {
    Lanes<float, N> cosine;
    incidence_cosines(scene, rays, cosine);
    for (int lane = 0; lane < packet.count; ++lane)
        write_return<N>(scene, rays, lane, cosine[lane], random, limits, out, packet.beam[lane]);
}
template void write_returns<kLanes>(const Scene&, Rays<kLanes>&, const Packet<kLanes>&, const PacketRandom<kLanes>&,
                                    RangeLimits, const ReturnArrays&);

void fire(Scene& scene, const BeamArrays& beams, RangeLimits limits, std::uint64_t seed, int threads, const Tick& tick,
          const ReturnArrays& out) {
    const RTCScene embree = scene.embree(Purpose::fire);
    for_chunks(beams, threads, tick, [&](Chunk chunk) {
        in_packets(scene, beams, chunk,
                   [&](const auto& packets) { fire_packets(scene, embree, beams, packets, limits, seed, out); });
    });
}

}  // namespace hedgerow
