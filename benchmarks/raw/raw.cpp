// SPDX-License-Identifier: Apache-2.0
// What one gets from Embree with the least code: rays in the best order, one call per packet (or ray), one float out.
// No coins for triangles, no noise, no labels, no sorting: the yardstick for `fire`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/embree.hpp"
#include "base/random.hpp"

namespace nb = nanobind;
using namespace hedgerow;

namespace {

using Floats3 = nb::ndarray<const float, nb::shape<-1, 3>, nb::c_contig>;
using Corners = nb::ndarray<const std::uint32_t, nb::shape<-1, 3>, nb::c_contig>;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig>;
using Out = nb::ndarray<float, nb::ndim<1>, nb::c_contig>;

struct Blob {
    float mean[3], w[6], permeability;
};

struct Blobs {
    std::vector<Blob> at;
    float tau_squared;
};

// A Gaussian met by one ray, in scalar code: what a plain port of the formulas gives.
void meet_one(const RTCIntersectFunctionNArguments* a) {
    const Blobs& blobs = *static_cast<const Blobs*>(a->geometryUserPtr);
    const Blob& g = blobs.at[a->primID];
    RTCRayHit& rh = *reinterpret_cast<RTCRayHit*>(a->rayhit);
    const float ox = g.mean[0] - rh.ray.org_x, oy = g.mean[1] - rh.ray.org_y, oz = g.mean[2] - rh.ray.org_z;
    const float qx = g.w[0] * ox, qy = g.w[1] * ox + g.w[2] * oy, qz = g.w[3] * ox + g.w[4] * oy + g.w[5] * oz;
    const float dx = rh.ray.dir_x, dy = rh.ray.dir_y, dz = rh.ray.dir_z;
    const float vx = g.w[0] * dx, vy = g.w[1] * dx + g.w[2] * dy, vz = g.w[3] * dx + g.w[4] * dy + g.w[5] * dz;
    const float inverse = 1 / (vx * vx + vy * vy + vz * vz), t = (vx * qx + vy * qy + vz * qz) * inverse;
    const float ex = qx - t * vx, ey = qy - t * vy, ez = qz - t * vz;
    if (ex * ex + ey * ey + ez * ez > blobs.tau_squared || t <= 0 || t > rh.ray.tfar) return;
    if (coin(rh.ray.id, rh.ray.id ^ 0x5bd1e995u, a->primID) < g.permeability) return;
    rh.ray.tfar = t;
    rh.hit.geomID = a->geomID;
    rh.hit.primID = a->primID;
}

void bounds(const RTCBoundsFunctionArguments* a) {
    const Blobs& blobs = *static_cast<const Blobs*>(a->geometryUserPtr);
    const Blob& g = blobs.at[a->primID];
    const float* w = g.w;
    const float l0 = 1 / w[0], l2 = 1 / w[2], l5 = 1 / w[5], l1 = -w[1] * l0 * l2, l4 = -w[4] * l2 * l5;
    const float l3 = -(w[3] * l0 + w[4] * l1) * l5, tau = std::sqrt(blobs.tau_squared) * 1.0001f;
    const float h[3] = {tau * std::abs(l0), tau * std::hypot(l1, l2), tau * std::hypot(l3, l4, l5)};
    RTCBounds& b = *a->bounds_o;
    b.lower_x = g.mean[0] - h[0], b.lower_y = g.mean[1] - h[1], b.lower_z = g.mean[2] - h[2];
    b.upper_x = g.mean[0] + h[0], b.upper_y = g.mean[1] + h[1], b.upper_z = g.mean[2] + h[2];
}

OwnedScene scene_of_mesh(const Floats3& vertices, const Corners& triangles) {
    OwnedGeometry mesh(rtcNewGeometry(device(), RTC_GEOMETRY_TYPE_TRIANGLE));
    std::memcpy(
        rtcSetNewGeometryBuffer(mesh.get(), RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, 12, vertices.shape(0)),
        vertices.data(), 12 * vertices.shape(0));
    std::memcpy(rtcSetNewGeometryBuffer(mesh.get(), RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, 12, triangles.shape(0)),
                triangles.data(), 12 * triangles.shape(0));
    rtcCommitGeometry(mesh.get());
    OwnedScene scene(rtcNewScene(device()));
    rtcAttachGeometry(scene.get(), mesh.get());
    return scene;
}

class Raw {
  public:
    void mesh(const Floats3& vertices, const Corners& triangles) {
        parts_.push_back(scene_of_mesh(vertices, triangles));
        rtcCommitScene(parts_.back().get());
    }

    void instance(std::size_t part, nb::ndarray<const float, nb::shape<-1, 12>, nb::c_contig> matrices) {
        for (std::size_t i = 0; i < matrices.shape(0); ++i) {
            OwnedGeometry placed(rtcNewGeometry(device(), RTC_GEOMETRY_TYPE_INSTANCE));
            rtcSetGeometryInstancedScene(placed.get(), parts_[part].get());
            rtcSetGeometryTransform(placed.get(), 0, RTC_FORMAT_FLOAT3X4_ROW_MAJOR, matrices.data() + 12 * i);
            rtcCommitGeometry(placed.get());
            if (!top_) top_ = OwnedScene(rtcNewScene(device()));
            rtcAttachGeometry(top_.get(), placed.get());
        }
    }

    void gaussians(const Floats3& mean, nb::ndarray<const float, nb::shape<-1, 6>, nb::c_contig> w,
                   const Floats& permeability, float tau) {
        blobs_.tau_squared = tau * tau;
        blobs_.at.resize(mean.shape(0));
        for (std::size_t i = 0; i < blobs_.at.size(); ++i) {
            std::memcpy(blobs_.at[i].mean, mean.data() + 3 * i, 12);
            std::memcpy(blobs_.at[i].w, w.data() + 6 * i, 24);
            blobs_.at[i].permeability = permeability.data()[i];
        }
        OwnedGeometry set(rtcNewGeometry(device(), RTC_GEOMETRY_TYPE_USER));
        rtcSetGeometryUserPrimitiveCount(set.get(), static_cast<unsigned>(blobs_.at.size()));
        rtcSetGeometryUserData(set.get(), &blobs_);
        rtcSetGeometryBoundsFunction(set.get(), bounds, nullptr);
        rtcSetGeometryIntersectFunction(set.get(), meet_one);
        rtcCommitGeometry(set.get());
        top_ = OwnedScene(rtcNewScene(device()));
        rtcAttachGeometry(top_.get(), set.get());
    }

    void build() {
        if (top_) rtcCommitScene(top_.get());
    }

    RTCScene scene() const { return top_ ? top_.get() : parts_.front().get(); }

  private:
    std::vector<OwnedScene> parts_;
    OwnedScene top_;
    Blobs blobs_;
};

template <typename Block>
void run(std::size_t n, int threads, Block&& block) {
    constexpr std::size_t kBlock = 8192;
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    tbb::task_arena arena(threads);
    arena.execute([&] {
        tbb::parallel_for(std::size_t{0}, (n + kBlock - 1) / kBlock,
                          [&](std::size_t b) { block(b * kBlock, std::min(n, (b + 1) * kBlock)); });
    });
}

void trace8_in(RTCScene scene, const Floats3& origin, const Floats3& direction, float far_m, int threads, Out out) {
    nb::gil_scoped_release release;
    run(out.size(), threads, [&](std::size_t begin, std::size_t end) {
        QueryContext context;
        init_context(context);
        alignas(32) int valid[8];
        RTCRayHit8 rays;
        for (std::size_t i = begin; i < end; i += 8) {
            for (std::size_t lane = 0; lane < 8; ++lane) {
                const std::size_t k = std::min(i + lane, end - 1);
                valid[lane] = i + lane < end ? -1 : 0;
                rays.ray.org_x[lane] = origin.data()[3 * k];
                rays.ray.org_y[lane] = origin.data()[3 * k + 1];
                rays.ray.org_z[lane] = origin.data()[3 * k + 2];
                rays.ray.dir_x[lane] = direction.data()[3 * k];
                rays.ray.dir_y[lane] = direction.data()[3 * k + 1];
                rays.ray.dir_z[lane] = direction.data()[3 * k + 2];
                rays.ray.tnear[lane] = 0;
                rays.ray.tfar[lane] = far_m;
                rays.ray.mask[lane] = ~0u;
                rays.ray.flags[lane] = 0;
                rays.ray.time[lane] = 0;
                rays.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
                rays.hit.instID[0][lane] = RTC_INVALID_GEOMETRY_ID;
            }
            intersect(valid, scene, context, rays);
            for (std::size_t lane = 0; lane < 8 && i + lane < end; ++lane) out.data()[i + lane] = rays.ray.tfar[lane];
        }
    });
}

void trace8(const Raw& raw, const Floats3& origin, const Floats3& direction, float far_m, int threads, Out out) {
    trace8_in(raw.scene(), origin, direction, far_m, threads, out);
}

// Through the very structures that the engine traces.
void trace8_at(std::uintptr_t scene, const Floats3& origin, const Floats3& direction, float far_m, int threads,
               Out out) {
    trace8_in(reinterpret_cast<RTCScene>(scene), origin, direction, far_m, threads, out);
}

void trace1(const Raw& raw, const Floats3& origin, const Floats3& direction, float far_m, int threads, Out out) {
    nb::gil_scoped_release release;
    run(out.size(), threads, [&](std::size_t begin, std::size_t end) {
        QueryContext context;
        init_context(context);
        for (std::size_t i = begin; i < end; ++i) {
            RTCRayHit rh{};
            rh.ray.org_x = origin.data()[3 * i];
            rh.ray.org_y = origin.data()[3 * i + 1];
            rh.ray.org_z = origin.data()[3 * i + 2];
            rh.ray.dir_x = direction.data()[3 * i];
            rh.ray.dir_y = direction.data()[3 * i + 1];
            rh.ray.dir_z = direction.data()[3 * i + 2];
            rh.ray.tfar = far_m;
            rh.ray.mask = ~0u;
            rh.ray.id = static_cast<unsigned>(i);
            rh.hit.geomID = RTC_INVALID_GEOMETRY_ID;
            rh.hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
#if HEDGEROW_EMBREE_MAJOR == 4
            rtcIntersect1(raw.scene(), &rh);
#else
            rtcIntersect1(raw.scene(), &context, &rh);
#endif
            out.data()[i] = rh.ray.tfar;
        }
    });
}

}  // namespace

NB_MODULE(hedgerow_raw, m) {
    nb::class_<Raw>(m, "Raw")
        .def(nb::init<>())
        .def("mesh", &Raw::mesh)
        .def("instance", &Raw::instance)
        .def("gaussians", &Raw::gaussians)
        .def("build", &Raw::build);
    m.def("trace8", trace8, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg(),
          nb::arg().noconvert());
    m.def("trace8_at", trace8_at, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg(),
          nb::arg().noconvert());
    m.def("trace1", trace1, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg(),
          nb::arg().noconvert());
}
