// SPDX-License-Identifier: Apache-2.0
#include "trace/see_points.hpp"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/morton.hpp"

namespace hedgerow {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// What the rays of a packet have found so far.
struct Glance : QueryContext {
    float min_m, reach_squared;
    bool by_range;       // whether the first along the ray is wanted
    Lanes<float> score;  // the smaller the better
    Lanes<float> mean_m;
    Lanes<std::uint32_t> found;  // number in the present cloud, plus one; 0: nothing better in this cloud

    Glance() { init_context(*this); }
};

std::vector<std::uint64_t> morton_keys(std::span<const float> position) {
    float low[3] = {kInfinity, kInfinity, kInfinity}, size = 0;
    for (std::size_t i = 0; i < position.size(); ++i) low[i % 3] = std::min(low[i % 3], position[i]);
    for (std::size_t i = 0; i < position.size(); ++i) size = std::max(size, position[i] - low[i % 3]);
    const float scale = size > 0 ? 1048575.0f / size : 0.0f;  // 20 bits per axis
    std::vector<std::uint64_t> keys(position.size() / 3);
    for (std::size_t i = 0; i < keys.size(); ++i)
        for (unsigned axis = 0; axis < 3; ++axis) {
            const auto cell = static_cast<std::uint32_t>((position[3 * i + axis] - low[axis]) * scale);
            keys[i] |= (std::uint64_t{spread3(cell >> 10)} << 30 | spread3(cell & 1023u)) << axis;
        }
    return keys;
}

void run_bounds(const RTCBoundsFunctionArguments* arguments) {
    const auto& cloud = *static_cast<const PointCloud*>(arguments->geometryUserPtr);
    float low[3] = {kInfinity, kInfinity, kInfinity}, high[3] = {-kInfinity, -kInfinity, -kInfinity};
    for (const PointCloud::Place& place : cloud.run(arguments->primID))
        for (int axis = 0; axis < 3; ++axis) {
            // A little wider than exact: the float32 distance test must never be stricter than the box.
            const float half = cloud.reach_m() * 1.00001f + 1e-6f * std::abs(place.position[axis]) + 1e-6f;
            low[axis] = std::min(low[axis], place.position[axis] - half);
            high[axis] = std::max(high[axis], place.position[axis] + half);
        }
    RTCBounds& out = *arguments->bounds_o;
    out.lower_x = low[0], out.lower_y = low[1], out.lower_z = low[2];
    out.upper_x = high[0], out.upper_y = high[1], out.upper_z = high[2];
}

// Compares one point with what eight rays have found; equation numbers are those of Browning 2012.
void compare(const PointCloud::Place& place, const int* valid, RTCRay8& ray, Glance& glance) {
    const bool by_range = glance.by_range;
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) {
        const float x = place.position[0] - ray.org_x[lane];
        const float y = place.position[1] - ray.org_y[lane];
        const float z = place.position[2] - ray.org_z[lane];
        const float dx = ray.dir_x[lane], dy = ray.dir_y[lane], dz = ray.dir_z[lane];
        const float t = (x * dx + y * dy + z * dz) / (dx * dx + dy * dy + dz * dz);  // (9)
        const float ex = x - t * dx, ey = y - t * dy, ez = z - t * dz;
        const float distance_squared = ex * ex + ey * ey + ez * ez;  // (10)
        const float score = by_range ? t : distance_squared;
        const bool seen = (valid[lane] != 0) & (distance_squared < glance.reach_squared) & (t > 0) &
                          (t >= glance.min_m) & (t <= ray.tfar[lane]);
        const bool wins = (score < glance.score[lane]) |
                          ((score == glance.score[lane]) & (place.number + 1 < glance.found[lane]));  // (11)
        const bool better = seen & wins;
        glance.score[lane] = better ? score : glance.score[lane];
        glance.mean_m[lane] = better ? t : glance.mean_m[lane];
        glance.found[lane] = better ? place.number + 1 : glance.found[lane];
        ray.tfar[lane] = better & by_range ? t : ray.tfar[lane];
    }
}

void meet_points(const RTCIntersectFunctionNArguments* arguments) {
    const auto& cloud = *static_cast<const PointCloud*>(arguments->geometryUserPtr);
    RTCRay8& ray = reinterpret_cast<RTCRayHit8*>(arguments->rayhit)->ray;
    auto& glance = *static_cast<Glance*>(arguments->context);
    for (const PointCloud::Place& place : cloud.run(arguments->primID)) compare(place, arguments->valid, ray, glance);
}

struct Sighting {
    const PointCloud* cloud = nullptr;
    std::uint32_t number = 0;
};

void write(const Sighting& seen, float mean_m, const float* direction, const SurfaceNoise& noise, const SeenArrays& out,
           std::size_t beam) {
    if (!seen.cloud) {
        out.element[beam] = -1;
        out.mean_m[beam] = kInfinity;
        out.label[beam] = 0;
        out.sigma_m[beam] = out.intensity[beam] = out.incidence_cosine[beam] = kNone;
        return;
    }
    const PointCloud::Finish& finish = seen.cloud->finish(seen.number);
    const float* n = finish.normal;
    const float along = n[0] * direction[0] + n[1] * direction[1] + n[2] * direction[2];
    const float cosine = std::min(1.0f, std::abs(along));
    out.element[beam] = seen.cloud->first() + seen.number;
    out.mean_m[beam] = mean_m;
    out.sigma_m[beam] = noise.sigma_m(cosine, mean_m);
    out.intensity[beam] = finish.intensity;
    out.label[beam] = finish.label;
    out.incidence_cosine[beam] = cosine;
}

}  // namespace

PointCloud::PointCloud(const PointArrays& arrays, float reach_m, std::int64_t first)
    : places_(arrays.label.size()), finishes_(arrays.label.size()), reach_m_(reach_m), first_(first) {
    const std::vector<std::uint64_t> keys = morton_keys(arrays.position);
    for (std::uint32_t i = 0; i < places_.size(); ++i) {
        const float* p = &arrays.position[3 * std::size_t{i}];
        const float* n = &arrays.normal[3 * std::size_t{i}];
        places_[i] = {{p[0], p[1], p[2]}, i};
        finishes_[i] = {{n[0], n[1], n[2]}, arrays.intensity[i], arrays.label[i]};
    }
    tbb::parallel_sort(places_.begin(), places_.end(), [&](const Place& a, const Place& b) {
        return keys[a.number] != keys[b.number] ? keys[a.number] < keys[b.number] : a.number < b.number;
    });
    geometry_ = OwnedGeometry(rtcNewGeometry(device(), RTC_GEOMETRY_TYPE_USER));
    const std::size_t n_runs = (places_.size() + kRun - 1) / kRun;
    rtcSetGeometryUserPrimitiveCount(geometry_.get(), static_cast<unsigned>(n_runs));
    rtcSetGeometryUserData(geometry_.get(), this);
    rtcSetGeometryBoundsFunction(geometry_.get(), run_bounds, nullptr);
    rtcSetGeometryIntersectFunction(geometry_.get(), meet_points);
    rtcCommitGeometry(geometry_.get());
    scene_ = OwnedScene(rtcNewScene(device()));
    rtcAttachGeometry(scene_.get(), geometry_.get());
    rtcCommitScene(scene_.get());
    check_embree("building a cloud of points");
}

void see_points(std::span<const std::shared_ptr<PointCloud>> clouds, const BeamArrays& beams, RangeLimits limits,
                Pick pick, const SurfaceNoise& noise, int threads, const Tick& tick, const SeenArrays& out) {
    for_chunks(beams, threads, tick, [&](Chunk chunk) {
        const BeamOrder order(beams, chunk);
        const Packets<> packets(order);
        Lanes<float> far_m;
        for (float& far : far_m.at) far = limits.max_m;
        Glance glance;
        glance.min_m = limits.min_m;
        glance.by_range = pick == Pick::first;
        RTCRayHit8 rays = fresh_rays();
        for (std::size_t i = 0; i < packets.size(); ++i) {
            const Packet<> packet = packets[i];
            Sighting seen[kLanes];
            for (float& score : glance.score.at) score = kInfinity;
            load_rays(beams, packet, far_m, rays);
            for (const auto& cloud : clouds) {
                glance.reach_squared = cloud->reach_m() * cloud->reach_m();
                for (std::uint32_t& found : glance.found.at) found = 0;
                intersect(packet.valid, cloud->embree(), glance, rays);
                for (int lane = 0; lane < kLanes; ++lane)
                    if (glance.found[lane]) seen[lane] = {cloud.get(), glance.found[lane] - 1};
            }
            for (int lane = 0; lane < packet.count; ++lane) {
                const std::size_t beam = packet.beam[lane];
                write(seen[lane], glance.mean_m[lane], &beams.direction[3 * beam], noise, out, beam);
            }
        }
    });
}

}  // namespace hedgerow
