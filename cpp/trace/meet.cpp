// SPDX-License-Identifier: Apache-2.0
#include "trace/meet.hpp"

#include <bit>
#include <cmath>

namespace hedgerow {
namespace {

// What a hit says of the element that stopped the ray.
struct HitName {
    unsigned geometry, primitive, instance;
};

// How some rays pass one Gaussian.
template <int N>
struct Approach {
    Lanes<float, N> mean_m, variance_m2, distance_squared;  // variance: of the range, sigma_t squared
    unsigned met = 0;                                       // one bit per lane
};

// A Gaussian in the frame of the rays: its mean, and what whitens it.
struct Lower {
    const float *mean, *w;  // lower triangle by rows
    float x(float a, float, float) const { return w[0] * a; }
    float y(float a, float b, float) const { return w[1] * a + w[2] * b; }
    float z(float a, float b, float c) const { return w[3] * a + w[4] * b + w[5] * c; }
};
struct Square {
    float mean[3], w[9];  // by rows
    float x(float a, float b, float c) const { return w[0] * a + w[1] * b + w[2] * c; }
    float y(float a, float b, float c) const { return w[3] * a + w[4] * b + w[5] * c; }
    float z(float a, float b, float c) const { return w[6] * a + w[7] * b + w[8] * c; }
};

// A placed Gaussian in the world: with x_local = A^-1 (x - b), whitening W becomes W A^-1.
Square in_world(const Gaussian& gaussian, const UnfoldedVolumes::Group& group) {
    Square out;
    const float *a = group.to_world, *i = group.to_local, *w = gaussian.whitening, *m = gaussian.mean;
    for (int row = 0; row < 3; ++row)
        out.mean[row] = a[4 * row] * m[0] + a[4 * row + 1] * m[1] + a[4 * row + 2] * m[2] + a[4 * row + 3];
    for (int column = 0; column < 3; ++column) {
        out.w[column] = w[0] * i[column];
        out.w[3 + column] = w[1] * i[column] + w[2] * i[3 + column];
        out.w[6 + column] = w[3] * i[column] + w[4] * i[3 + column] + w[5] * i[6 + column];
    }
    return out;
}

// Works for directions of any length, so also inside instances: t, and with it sigma, stays in world units.
template <int N, typename Whitening, typename Ray>
void approach(const Whitening& gaussian, float tau_squared, const Ray& ray, const int* valid, const float* far_m,
              Approach<N>& out) {
    unsigned met = 0;
#pragma omp simd reduction(| : met)
    for (int lane = 0; lane < N; ++lane) {
        const float ox = gaussian.mean[0] - ray.org_x[lane];
        const float oy = gaussian.mean[1] - ray.org_y[lane];
        const float oz = gaussian.mean[2] - ray.org_z[lane];
        const float dx = ray.dir_x[lane], dy = ray.dir_y[lane], dz = ray.dir_z[lane];
        // In whitened space the Gaussian is a unit sphere and the rest is plain geometry.
        const float qx = gaussian.x(ox, oy, oz), qy = gaussian.y(ox, oy, oz), qz = gaussian.z(ox, oy, oz);
        const float vx = gaussian.x(dx, dy, dz), vy = gaussian.y(dx, dy, dz), vz = gaussian.z(dx, dy, dz);
        const float inverse = 1.0f / (vx * vx + vy * vy + vz * vz);
        const float t = (vx * qx + vy * qy + vz * qz) * inverse;
        const float ex = qx - t * vx, ey = qy - t * vy, ez = qz - t * vz;
        const float distance_squared = ex * ex + ey * ey + ez * ez;
        out.mean_m[lane] = t;
        out.variance_m2[lane] = inverse;
        out.distance_squared[lane] = distance_squared;
        const bool meets =
            (valid[lane] != 0) & (distance_squared <= tau_squared) & (t > ray.tnear[lane]) & (t <= far_m[lane]);
        met |= static_cast<unsigned>(meets) << lane;
    }
    out.met = met;
}

// The profile of the optical depth across a Gaussian, 1 in its middle.
template <StopLaw law>
float profile(float distance_squared, float per_tau_squared) {
    const float inside = 1.0f - distance_squared * per_tau_squared;
    return law == StopLaw::depth ? inside * inside : exp_negative(-0.5f * distance_squared);
}

// The law as a template argument: the constant case must not pay for exponentials.
template <StopLaw law>
float pass_probability(float stop, float variance_m2, float distance_squared, float per_tau_squared) {
    if constexpr (law == StopLaw::permeability) return stop;
    const float way_m = law == StopLaw::extinction ? std::sqrt(variance_m2) : 1.0f;
    return exp_negative(-stop * way_m * profile<law>(distance_squared, per_tau_squared));
}

// The coin against the probability to pass, as -log(coin) against the optical depth: both sides are short enough for
// the processor to work on them side by side, while an exponential of an exponential has to wait for itself. Where
// the depth grows with the way, both are squared, which saves a root.
template <StopLaw law>
bool stops_at(float thrown, float stop, float variance_m2, float distance_squared, float per_tau_squared) {
    if constexpr (law == StopLaw::permeability) return thrown >= stop;
    const float log = log_positive(thrown), peak = stop * profile<law>(distance_squared, per_tau_squared);
    if constexpr (law == StopLaw::depth) return -log <= peak;
    return log * log <= peak * peak * variance_m2;
}

// Throws the element's coin for every ray that meets it, and ends those rays there that it stops.
template <StopLaw law, int N>
void toss(const Gaussian& gaussian, float per_tau_squared, std::uint64_t element, HitName name, const Approach<N>& way,
          PacketContext<N>& context, const RTCIntersectFunctionNArguments& arguments) {
    Rays<N>& rays = *reinterpret_cast<Rays<N>*>(arguments.rayhit);
    const PacketRandom<N>& coins = *context.coins;
    unsigned stopped = 0;  // one bit per lane
#pragma omp simd reduction(| : stopped)
    for (int lane = 0; lane < N; ++lane) {
        const float thrown = coin(coins.key_a[lane], coins.key_b[lane], element);
        const bool stops =
            stops_at<law>(thrown, gaussian.stop, way.variance_m2[lane], way.distance_squared[lane], per_tau_squared);
        stopped |= static_cast<unsigned>(stops) << lane;
    }
    for (stopped &= way.met; stopped; stopped &= stopped - 1) {
        const int lane = std::countr_zero(stopped);
        if (way.mean_m[lane] == rays.ray.tfar[lane] && context.nearest[lane] < element) continue;
        context.nearest[lane] = element;
        rays.ray.tfar[lane] = way.mean_m[lane];
        rays.hit.u[lane] = std::sqrt(way.variance_m2[lane]);  // read back by fire
        rays.hit.geomID[lane] = name.geometry;
        rays.hit.primID[lane] = name.primitive;
        rays.hit.instID[0][lane] = name.instance;
    }
}

template <int N, typename Whitening>
void meet(const RTCIntersectFunctionNArguments* arguments, const Gaussians& set, const Whitening& whitening,
          HitName name) {
    const Gaussian& gaussian = set.elements[name.primitive];
    const auto& ray = reinterpret_cast<const Rays<N>*>(arguments->rayhit)->ray;
    auto& context = *static_cast<PacketContext<N>*>(arguments->context);
    if (context.passed && context.passed->test(label_under(context.scene->placement(name.instance), gaussian.label)))
        return;
    // When all crossings are wanted, the ray may end before the middle of an ellipsoid that it still reaches into.
    const float* far_m = context.coins ? ray.tfar : context.max_range_m.at;
    Approach<N> way;
    approach(whitening, set.tau_squared, ray, arguments->valid, far_m, way);
    if (!way.met) return;
    const std::uint64_t element = context.scene->first_element(name.instance) + set.first_element + gaussian.number;
    const auto by_law = [&](auto&& what) {
        if (set.law == StopLaw::permeability) return what.template operator()<StopLaw::permeability>();
        if (set.law == StopLaw::extinction) return what.template operator()<StopLaw::extinction>();
        return what.template operator()<StopLaw::depth>();
    };
    if (context.coins)
        return by_law([&]<StopLaw law>() {
            toss<law, N>(gaussian, set.per_tau_squared, element, name, way, context, *arguments);
        });
    const auto pass_by_law = by_law([]<StopLaw law>() { return &pass_probability<law>; });
    for (unsigned met = way.met; met; met &= met - 1) {
        const int lane = std::countr_zero(met);
        const float variance_m2 = way.variance_m2[lane], distance_squared = way.distance_squared[lane];
        context.crossings[lane].push_back(
            {way.mean_m[lane], std::sqrt(variance_m2), std::sqrt(variance_m2 * (set.tau_squared - distance_squared)),
             pass_by_law(gaussian.stop, variance_m2, distance_squared, set.per_tau_squared), element,
             gaussian.intensity});
    }
}

}  // namespace

void meet_gaussian(const RTCIntersectFunctionNArguments* arguments) {
    const auto& set = *static_cast<const Gaussians*>(arguments->geometryUserPtr);
    const Gaussian& gaussian = set.elements[arguments->primID];
    const HitName name{arguments->geomID, arguments->primID, arguments->context->instID[0]};
    const Lower whitening{gaussian.mean, gaussian.whitening};
    return arguments->N == kWideLanes ? meet<kWideLanes>(arguments, set, whitening, name)
                                      : meet<kLanes>(arguments, set, whitening, name);
}

void meet_unfolded(const RTCIntersectFunctionNArguments* arguments) {
    const auto& unfolded = *static_cast<const UnfoldedVolumes*>(arguments->geometryUserPtr);
    const auto [number, gaussian] = unfolded.copies[arguments->primID];
    const UnfoldedVolumes::Group& group = unfolded.groups[number];
    const HitName name{group.geometry, gaussian, group.instance};  // as if Embree had met it in its instance
    const Square whitening = in_world(group.set->elements[gaussian], group);
    return arguments->N == kWideLanes ? meet<kWideLanes>(arguments, *group.set, whitening, name)
                                      : meet<kLanes>(arguments, *group.set, whitening, name);
}

void toss_for_triangles(const RTCFilterFunctionNArguments* arguments) {
    const auto& context = *static_cast<const PacketContext<>*>(arguments->context);
    if (!context.coins) return;  // note_triangles sees to these
    const auto& mesh = *static_cast<const Mesh*>(arguments->geometryUserPtr);
    for (unsigned lane = 0; lane < arguments->N; ++lane) {
        if (!arguments->valid[lane]) continue;
        const unsigned triangle = RTCHitN_primID(arguments->hit, arguments->N, lane);
        const float pass = mesh.finish(triangle).permeability;
        if (pass == 0) continue;
        const std::uint64_t element =
            context.scene->first_element(RTCHitN_instID(arguments->hit, arguments->N, lane, 0)) + mesh.first_element +
            triangle;
        if (coin(context.coins->key_a[lane], context.coins->key_b[lane], element) < pass) arguments->valid[lane] = 0;
    }
}

void note_triangles(const RTCFilterFunctionNArguments* arguments) {
    const auto& context = *static_cast<const PacketContext<>*>(arguments->context);
    const auto& mesh = *static_cast<const Mesh*>(arguments->geometryUserPtr);
    const unsigned n = arguments->N;
    for (unsigned lane = 0; lane < n; ++lane) {
        if (!arguments->valid[lane]) continue;
        const float t = RTCRayN_tfar(arguments->ray, n, lane);
        const unsigned triangle = RTCHitN_primID(arguments->hit, n, lane);
        const unsigned instance = RTCHitN_instID(arguments->hit, n, lane, 0);
        const float normal[3] = {RTCHitN_Ng_x(arguments->hit, n, lane), RTCHitN_Ng_y(arguments->hit, n, lane),
                                 RTCHitN_Ng_z(arguments->hit, n, lane)};
        const float direction[3] = {context.direction[0][lane], context.direction[1][lane], context.direction[2][lane]};
        const float cosine = incidence_cosine(context.scene->placement(instance), normal, direction);
        const Finish& finish = mesh.finish(triangle);
        if (!context.ends_at_opaque || finish.permeability > 0) arguments->valid[lane] = 0;  // look on behind it
        context.crossings[lane].push_back({t, mesh.noise(finish).sigma_m(cosine, t), -1.0f, finish.permeability,
                                           context.scene->first_element(instance) + mesh.first_element + triangle,
                                           mesh.intensity(finish, cosine)});
    }
}

void pass_triangles(const RTCFilterFunctionNArguments* arguments) {
    const auto& context = *static_cast<const PacketContext<>*>(arguments->context);
    const auto& mesh = *static_cast<const Mesh*>(arguments->geometryUserPtr);
    for (unsigned lane = 0; lane < arguments->N; ++lane) {
        if (!arguments->valid[lane]) continue;
        const Placement* placement = context.scene->placement(RTCHitN_instID(arguments->hit, arguments->N, lane, 0));
        const std::uint16_t own = mesh.finish(RTCHitN_primID(arguments->hit, arguments->N, lane)).label;
        if (context.passed->test(label_under(placement, own))) arguments->valid[lane] = 0;
    }
}

}  // namespace hedgerow
