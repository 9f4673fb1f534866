// SPDX-License-Identifier: Apache-2.0
#include "trace/first_behind.hpp"

#include <cmath>
#include <limits>

namespace hedgerow {
namespace {

// Stream of the normal numbers; stream 0 belongs to the first return, whose error must not be repeated.
constexpr std::uint32_t kStream = 1;

void draw_normals(std::uint64_t seed, const Lanes<std::uint64_t>& pulse, PacketRandom<>& random) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) {
        const Words4 words = philox(seed, pulse[lane], 0, kStream);
        const NormalPair pair = normal_pair(words.at[0], words.at[1]);
        random.normal[lane] = pair.first;
        random.second_normal[lane] = pair.second;
    }
}

void behind_chunk(const Scene& scene, RTCScene embree, const BeamArrays& beams, Chunk chunk,
                  std::span<const float> near_m, std::span<const float> far_m, const LabelSet& passed,
                  std::uint64_t seed, const ReturnArrays& out) {
    const RangeLimits anywhere{0, std::numeric_limits<float>::infinity()};
    const BeamOrder order(beams, chunk);
    const Packets<> packets(order);
    PacketRandom<> random;
    PacketContext<> context(scene);
    context.coins = &random;
    context.passed = &passed;
    RTCRayHit8 rays = fresh_rays();
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const Packet<> packet = packets[i];
        Lanes<float> far;
        Lanes<std::uint64_t> pulse;
        for (int lane = 0; lane < kLanes; ++lane) {
            far[lane] = far_m[packet.beam[lane]];
            // Embree looks beyond tnear, not at it.
            rays.ray.tnear[lane] = std::nextafter(near_m[packet.beam[lane]], 0.0f);
            pulse[lane] = static_cast<std::uint64_t>(beams.pulse[packet.beam[lane]]);
        }
        load_rays<kLanes>(beams, packet, far, rays);
        for (std::uint64_t& nearest : context.nearest.at) nearest = ~std::uint64_t{0};
        random.draw(seed, pulse);
        draw_normals(seed, pulse, random);
        packets.prefetch(beams, i + 1);
        intersect(packet.valid, embree, context, rays, pass_triangles);
        write_returns<kLanes>(scene, rays, packet, random, anywhere, out);
    }
}

}  // namespace

void first_behind(Scene& scene, const BeamArrays& beams, std::span<const float> near_m, std::span<const float> far_m,
                  const LabelSet& passed, std::uint64_t seed, int threads, const Tick& tick, const ReturnArrays& out) {
    const RTCScene embree = scene.embree(Purpose::pierce);
    for_chunks(beams, threads, tick,
               [&](Chunk chunk) { behind_chunk(scene, embree, beams, chunk, near_m, far_m, passed, seed, out); });
}

}  // namespace hedgerow
