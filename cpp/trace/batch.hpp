// SPDX-License-Identifier: Apache-2.0
// Beams as the kernels see them, cut into chunks for the threads and into coherent packets.
//
// Chunks and packets depend on the beams alone, never on threads, and no chunk crosses a sweep. So the bytes of a
// result are the same on any number of threads, and a sweep fired alone gives what it gives inside a drive.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/lanes.hpp"
#include "scene/scene.hpp"

namespace hedgerow {

struct BeamArrays {
    std::span<const double> origin_m;     // 3 per beam, map frame
    std::span<const float> direction;     // 3 per beam, unit length
    std::span<const std::int64_t> pulse;  // keys of the random numbers
    std::span<const std::uint16_t> ring;
    std::span<const std::int32_t> sweep;
    double scene_origin_m[3];  // where the scene's own frame sits in the map

    std::size_t size() const { return pulse.size(); }
};

struct Chunk {
    std::size_t begin, end;
};

// Called between batches with the number of beams done; may throw to stop (Ctrl-C).
using Tick = std::function<void(std::size_t)>;

// Runs `work` on every chunk, on `threads` threads (0: all), and ticks between batches.
void for_chunks(const BeamArrays& beams, int threads, const Tick& tick, const std::function<void(Chunk)>& work);

// Some beams of a chunk; lanes past the end repeat the last beam and are not valid.
template <int N = kLanes>
struct Packet {
    alignas(4 * N) int valid[N];
    std::size_t beam[N];
    int count;
};

// The beams of a chunk in an order in which neighbours point nearly the same way.
class BeamOrder {
  public:
    BeamOrder(const BeamArrays& beams, Chunk chunk);
    std::size_t size() const { return order_.size(); }
    std::size_t operator[](std::size_t i) const { return begin_ + order_[i]; }

  private:
    std::size_t begin_;
    std::vector<std::uint32_t> order_;
};

// The same in packets.
template <int N = kLanes>
class Packets {
  public:
    explicit Packets(const BeamOrder& order) : order_(order) {}
    std::size_t size() const { return (order_.size() + N - 1) / N; }
    Packet<N> operator[](std::size_t index) const;

    // Fetches the beams of a packet into the cache while another is being traced; none if there is no such packet.
    void prefetch(const BeamArrays& beams, std::size_t index) const;

  private:
    const BeamOrder& order_;
};

// Calls work with packets of the width that suits. Sixteen rays make more of each Gaussian that they meet; triangles,
// and chunks that do not fill a packet, are faster with eight.
template <typename Work>
void in_packets(const Scene& scene, const BeamArrays& beams, Chunk chunk, Work&& work) {
    const BeamOrder order(beams, chunk);
    if (!scene.has_meshes() && order.size() >= kWideLanes && traces_wide_packets())
        work(Packets<kWideLanes>(order));
    else
        work(Packets<kLanes>(order));
}

// A component of a direction as Embree 3.13 can trace it. Its coherent packets group rays by the signs of their
// directions but divide by +1e-18 where a component is smaller than that: one in (-1e-18, 0) makes its group miss.
inline float traceable(float component) { return std::fabs(component) < 1e-18f ? 0.0f : component; }

// A packet with all that stays the same from one to the next.
template <int N = kLanes>
Rays<N> fresh_rays();

// Sets the packet's rays to the beams, from 0 to each lane's far end.
template <int N>
void load_rays(const BeamArrays& beams, const Packet<N>& packet, const Lanes<float, N>& far_m, Rays<N>& rays);

}  // namespace hedgerow
