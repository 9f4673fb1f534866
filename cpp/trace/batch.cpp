// SPDX-License-Identifier: Apache-2.0
#include "trace/batch.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/morton.hpp"
#include "base/parallel.hpp"

namespace hedgerow {
namespace {

constexpr std::size_t kChunk = 4096;         // 64 azimuths of 64 rings: neighbours enough, and all its arrays fit in L2
constexpr std::size_t kChunksPerTick = 512;  // about 2 M beams: some tenths of a second

std::vector<Chunk> chunks_of(const BeamArrays& beams) {
    std::vector<Chunk> chunks;
    std::size_t begin = 0;
    for (std::size_t i = 1; i <= beams.size(); ++i) {
        if (i < beams.size() && i - begin < kChunk && beams.sweep[i] == beams.sweep[i - 1]) continue;
        chunks.push_back({begin, i});
        begin = i;
    }
    return chunks;
}

// Stable: beams come in firing order, so neighbours in a ring are neighbours in azimuth.
void sort_by_ring(std::span<const std::uint16_t> ring, std::vector<std::uint32_t>& order) {
    std::vector<std::uint32_t> next(*std::ranges::max_element(ring) + 2u);
    for (const std::uint16_t r : ring) ++next[r + 1u];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[next[ring[i]]++] = i;
}

// Whether most packets hold beams that point nearly the same way.
bool neighbours_agree(std::span<const float> direction, const std::vector<std::uint32_t>& order) {
    constexpr float kClose = 0.9976f;  // cosine of 4 degrees: eight steps of a coarse scanner
    std::size_t apart = 0;
    for (std::size_t last = kLanes - 1; last < order.size(); last += kLanes) {
        const float* a = &direction[3 * order[last + 1 - kLanes]];
        const float* b = &direction[3 * order[last]];
        apart += a[0] * b[0] + a[1] * b[1] + a[2] * b[2] < kClose;
    }
    return apart * kLanes * 4 <= order.size();
}

// Beams in no useful order: along a Morton curve over the octahedral map of the sphere.
void sort_by_direction(std::span<const float> direction, std::vector<std::uint32_t>& order) {
    std::vector<std::uint64_t> keys(order.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const float* d = &direction[3 * i];
        const float sum = std::abs(d[0]) + std::abs(d[1]) + std::abs(d[2]);
        float u = d[0] / sum, v = d[1] / sum;
        if (d[2] < 0) {
            const float folded = std::copysign(1 - std::abs(v), u);
            v = std::copysign(1 - std::abs(u), v);
            u = folded;
        }
        const auto cell = [](float x) { return static_cast<std::uint32_t>(std::clamp((x + 1) * 512, 0.0f, 1023.0f)); };
        keys[i] = std::uint64_t{spread3(cell(u)) | spread3(cell(v)) << 1} << 32 | i;
    }
    std::ranges::sort(keys);
    std::ranges::transform(keys, order.begin(), [](std::uint64_t key) { return static_cast<std::uint32_t>(key); });
}

}  // namespace

void for_chunks(const BeamArrays& beams, int threads, const Tick& tick, const std::function<void(Chunk)>& work) {
    const std::vector<Chunk> chunks = chunks_of(beams);
    Threads arena(threads);
    for (std::size_t first = 0; first < chunks.size(); first += kChunksPerTick) {
        const std::size_t last = std::min(first + kChunksPerTick, chunks.size());
        arena.execute([&] { tbb::parallel_for(first, last, [&](std::size_t i) { work(chunks[i]); }); });
        tick(chunks[last - 1].end);
    }
}

BeamOrder::BeamOrder(const BeamArrays& beams, Chunk chunk) : begin_(chunk.begin), order_(chunk.end - chunk.begin) {
    sort_by_ring(beams.ring.subspan(chunk.begin, order_.size()), order_);
    const auto direction = beams.direction.subspan(3 * chunk.begin, 3 * order_.size());
    if (!neighbours_agree(direction, order_)) sort_by_direction(direction, order_);
}

template <int N>
Packet<N> Packets<N>::operator[](std::size_t index) const {
    Packet<N> packet;
    const std::size_t first = index * N;
    packet.count = static_cast<int>(std::min<std::size_t>(N, order_.size() - first));
    for (int lane = 0; lane < N; ++lane) {
        packet.valid[lane] = lane < packet.count ? -1 : 0;
        packet.beam[lane] = order_[first + std::min(lane, packet.count - 1)];
    }
    return packet;
}

template <int N>
void Packets<N>::prefetch(const BeamArrays& beams, std::size_t index) const {
#if defined(__GNUC__)
    const std::size_t first = index * N, end = std::min(first + N, order_.size());
    for (std::size_t i = first; i < end; ++i) {
        const std::size_t beam = order_[i];
        __builtin_prefetch(&beams.origin_m[3 * beam]);
        __builtin_prefetch(&beams.direction[3 * beam]);
        __builtin_prefetch(&beams.pulse[beam]);
    }
#endif
}

template <int N>
void load_rays(const BeamArrays& beams, const Packet<N>& packet, const Lanes<float, N>& far_m, Rays<N>& rays) {
    for (int lane = 0; lane < N; ++lane) {
        const double* origin = &beams.origin_m[3 * packet.beam[lane]];
        const float* direction = &beams.direction[3 * packet.beam[lane]];
        rays.ray.org_x[lane] = static_cast<float>(origin[0] - beams.scene_origin_m[0]);
        rays.ray.org_y[lane] = static_cast<float>(origin[1] - beams.scene_origin_m[1]);
        rays.ray.org_z[lane] = static_cast<float>(origin[2] - beams.scene_origin_m[2]);
        rays.ray.dir_x[lane] = traceable(direction[0]);
        rays.ray.dir_y[lane] = traceable(direction[1]);
        rays.ray.dir_z[lane] = traceable(direction[2]);
    }
    for (int lane = 0; lane < N; ++lane) {
        rays.ray.tfar[lane] = far_m[lane];
        rays.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
        rays.hit.instID[0][lane] = RTC_INVALID_GEOMETRY_ID;
    }
}

template <int N>
Rays<N> fresh_rays() {
    Rays<N> rays{};
    for (int lane = 0; lane < N; ++lane) {
        rays.ray.mask[lane] = ~0u;
        rays.ray.id[lane] = static_cast<unsigned>(lane);
    }
    return rays;
}

template class Packets<kLanes>;
template class Packets<kWideLanes>;
template Rays<kLanes> fresh_rays<kLanes>();
template Rays<kWideLanes> fresh_rays<kWideLanes>();
template void load_rays<kLanes>(const BeamArrays&, const Packet<kLanes>&, const Lanes<float, kLanes>&, Rays<kLanes>&);
template void load_rays<kWideLanes>(const BeamArrays&, const Packet<kWideLanes>&, const Lanes<float, kWideLanes>&,
                                    Rays<kWideLanes>&);

}  // namespace hedgerow
