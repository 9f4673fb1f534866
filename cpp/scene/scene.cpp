// SPDX-License-Identifier: Apache-2.0
#include "scene/scene.hpp"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "base/morton.hpp"
#include "trace/meet.hpp"

namespace hedgerow {
namespace {

// Inverse of the lower triangle W: its rows' norms are the standard deviations along x, y and z.
std::array<double, 6> lower_inverse(const float* w) {
    const double a = w[0], b = w[1], c = w[2], d = w[3], e = w[4], f = w[5];
    const double i0 = 1 / a, i2 = 1 / c, i5 = 1 / f;
    const double i1 = -b * i0 * i2;
    const double i4 = -e * i2 * i5;
    const double i3 = -(d * i0 + e * i1) * i5;
    return {i0, i1, i2, i3, i4, i5};
}

std::array<double, 3> half_extent(const Gaussian& gaussian) {
    const auto l = lower_inverse(gaussian.whitening);
    return {std::abs(l[0]), std::hypot(l[1], l[2]), std::hypot(l[3], l[4], l[5])};
}

void gaussian_bounds(const RTCBoundsFunctionArguments* arguments) {
    const auto& set = *static_cast<const Gaussians*>(arguments->geometryUserPtr);
    const Gaussian& gaussian = set.elements[arguments->primID];
    const auto sigma = half_extent(gaussian);
    const double tau = std::sqrt(static_cast<double>(set.tau_squared));
    float low[3], high[3];
    for (int axis = 0; axis < 3; ++axis) {
        // A little wider than exact: the float32 distance test must never be stricter than the box.
        const double half = tau * sigma[axis] * (1 + 1e-5) + 1e-6 * std::abs(gaussian.mean[axis]) + 1e-7;
        low[axis] = static_cast<float>(gaussian.mean[axis] - half);
        high[axis] = static_cast<float>(gaussian.mean[axis] + half);
    }
    RTCBounds& out = *arguments->bounds_o;
    out.lower_x = low[0], out.lower_y = low[1], out.lower_z = low[2];
    out.upper_x = high[0], out.upper_y = high[1], out.upper_z = high[2];
}

// The same for a copy in the world: rows of A L, where L is the inverse of its whitening.
void unfolded_bounds(const RTCBoundsFunctionArguments* arguments) {
    const auto& unfolded = *static_cast<const UnfoldedVolumes*>(arguments->geometryUserPtr);
    const auto [number, index] = unfolded.copies[arguments->primID];
    const UnfoldedVolumes::Group& group = unfolded.groups[number];
    const Gaussian& gaussian = group.set->elements[index];
    const auto l = lower_inverse(gaussian.whitening);
    const double tau = std::sqrt(static_cast<double>(group.set->tau_squared));
    float low[3], high[3];
    for (int axis = 0; axis < 3; ++axis) {
        const float* a = &group.to_world[4 * axis];
        const double sigma =
            std::hypot(a[0] * l[0] + a[1] * l[1] + a[2] * l[3], a[1] * l[2] + a[2] * l[4], a[2] * l[5]);
        const double mean = static_cast<double>(a[0]) * gaussian.mean[0] +
                            static_cast<double>(a[1]) * gaussian.mean[1] +
                            static_cast<double>(a[2]) * gaussian.mean[2] + a[3];
        const double half = tau * sigma * (1 + 1e-5) + 2e-6 * std::abs(mean) + 1e-6;
        low[axis] = static_cast<float>(mean - half);
        high[axis] = static_cast<float>(mean + half);
    }
    RTCBounds& out = *arguments->bounds_o;
    out.lower_x = low[0], out.lower_y = low[1], out.lower_z = low[2];
    out.upper_x = high[0], out.upper_y = high[1], out.upper_z = high[2];
}

template <typename T>
std::vector<T> copied(std::span<const T> values) {
    return {values.begin(), values.end()};
}

// How much the linear part of a transform can stretch a length (its Frobenius norm bounds it).
double largest_scale(const Affine& m) {
    double sum = 0;
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 3; ++column) sum += m[4 * row + column] * m[4 * row + column];
    return std::sqrt(sum);
}

std::array<float, 9> inverse_transpose(const Affine& m) {
    const double a = m[0], b = m[1], c = m[2], d = m[4], e = m[5], f = m[6], g = m[8], h = m[9], i = m[10];
    const double c00 = e * i - f * h, c01 = f * g - d * i, c02 = d * h - e * g;
    const double determinant = a * c00 + b * c01 + c * c02;
    // Rays go through the inverse: it must not blow them up beyond what Embree can trace.
    constexpr double kMost = 1e6;
    if (!(std::abs(determinant) > 1e-12 * std::pow(largest_scale(m), 3)))
        throw std::invalid_argument("transform: not invertible");
    const double cofactors[9] = {c00,           c01,           c02,           c * h - b * i, a * i - c * g,
                                 b * g - a * h, b * f - c * e, c * d - a * f, a * e - b * d};
    std::array<float, 9> out;
    for (int k = 0; k < 9; ++k) {
        out[k] = static_cast<float>(cofactors[k] / determinant);
        if (!(std::abs(out[k]) <= kMost)) throw std::invalid_argument("transform: not invertible, or shrinks too much");
    }
    return out;
}

// The points in the order of a Morton curve through their bounding box.
std::vector<std::uint32_t> morton_order(std::span<const float> points) {
    const std::size_t n = points.size() / 3;
    float low[3], cell[3];
    for (int axis = 0; axis < 3; ++axis) {
        float least = points[axis], most = points[axis];
        for (std::size_t i = 1; i < n; ++i) {
            least = std::min(least, points[3 * i + axis]);
            most = std::max(most, points[3 * i + axis]);
        }
        low[axis] = least;
        cell[axis] = most > least ? 1023.0f / (most - least) : 0.0f;
    }
    std::vector<std::uint64_t> keys(n);  // code above, number below: sorting is stable by construction
    for (std::size_t i = 0; i < n; ++i) {
        std::uint64_t code = 0;
        for (int axis = 0; axis < 3; ++axis)
            code |= spread3(static_cast<std::uint32_t>((points[3 * i + axis] - low[axis]) * cell[axis])) << axis;
        keys[i] = code << 32 | i;
    }
    tbb::parallel_sort(keys);
    std::vector<std::uint32_t> order(n);
    std::ranges::transform(keys, order.begin(), [](std::uint64_t key) { return static_cast<std::uint32_t>(key); });
    return order;
}

OwnedScene new_embree_scene(Purpose purpose) {
    OwnedScene scene(rtcNewScene(device()));
    if (purpose == Purpose::pierce) rtcSetSceneFlags(scene.get(), kSceneTakesFilters);
    return scene;
}

}  // namespace

Affine compose(const Affine& outer, const Affine& inner) {
    Affine out{};
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 4; ++column) {
            double sum = column == 3 ? outer[4 * row + 3] : 0;
            for (int k = 0; k < 3; ++k) sum += outer[4 * row + k] * inner[4 * k + column];
            out[4 * row + column] = sum;
        }
    return out;
}

Mesh::Mesh(const MeshArrays& arrays, std::span<const SurfaceNoise> groups)
    : Geometry(Kind::mesh, arrays.answer, arrays.labels), lambertian_(arrays.lambertian), groups_(copied(groups)) {
    const std::size_t n = arrays.permeability.size();
    const auto finish_of = [&](std::size_t i) {
        return Finish{arrays.permeability[i], arrays.reflectance[i], arrays.intensity_sigma[i],
                      arrays.label[i],        arrays.noise_group[i], arrays.labels.mixed(i)};
    };
    uniform_ = true;
    for (std::size_t i = 1; i < n && uniform_; ++i) uniform_ = finish_of(i) == finish_of(0);
    finishes_.reserve(uniform_ ? 1 : n);
    for (std::size_t i = 0; i < (uniform_ ? 1 : n); ++i) finishes_.push_back(finish_of(i));
    handle = OwnedGeometry(rtcNewGeometry(device(), RTC_GEOMETRY_TYPE_TRIANGLE));
    const auto fill = [&](RTCBufferType type, RTCFormat format, const void* data, std::size_t count) {
        if (count == 0) return;
        void* target = rtcSetNewGeometryBuffer(handle.get(), type, 0, format, 12, count);
        check_embree("storing a mesh");
        std::memcpy(target, data, 12 * count);
    };
    fill(RTC_BUFFER_TYPE_VERTEX, RTC_FORMAT_FLOAT3, arrays.vertices.data(), arrays.vertices.size() / 3);
    fill(RTC_BUFFER_TYPE_INDEX, RTC_FORMAT_UINT3, arrays.triangles.data(), arrays.triangles.size() / 3);
    rtcSetGeometryUserData(handle.get(), static_cast<Mesh*>(this));
    // An opaque mesh needs no coins, and Embree is faster without a filter.
    if (std::ranges::any_of(finishes_, [](const Finish& finish) { return finish.permeability > 0; }))
        rtcSetGeometryIntersectFilterFunction(handle.get(), toss_for_triangles);
    set_mask();
    rtcCommitGeometry(handle.get());
}

Gaussians::Gaussians(const GaussianArrays& arrays, StopLaw law, float tau)
    : Geometry(Kind::gaussians, arrays.answer, arrays.labels),
      law(law),
      tau_squared(tau * tau),
      per_tau_squared(1 / (tau * tau)),
      elements(arrays.stop.size()) {
    const std::vector<std::uint32_t> order = morton_order(arrays.mean);
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const std::size_t number = order[i];
        std::memcpy(elements[i].mean, &arrays.mean[3 * number], sizeof elements[i].mean);
        std::memcpy(elements[i].whitening, &arrays.whitening[6 * number], sizeof elements[i].whitening);
        elements[i].stop = arrays.stop[number];
        elements[i].intensity = arrays.intensity[number];
        elements[i].intensity_sigma = arrays.intensity_sigma[number];
        elements[i].label = arrays.label[number];
        elements[i].mixed = arrays.labels.mixed(number);
        elements[i].number = order[i];
        const auto sigma = half_extent(elements[i]);
        // The norm of the three bounds the longest axis.
        max_sigma_m = std::max(max_sigma_m, static_cast<float>(std::hypot(sigma[0], sigma[1], sigma[2])));
    }
    handle = OwnedGeometry(rtcNewGeometry(device(), RTC_GEOMETRY_TYPE_USER));
    rtcSetGeometryUserPrimitiveCount(handle.get(), static_cast<unsigned>(elements.size()));
    rtcSetGeometryUserData(handle.get(), static_cast<Gaussians*>(this));
    rtcSetGeometryBoundsFunction(handle.get(), gaussian_bounds, nullptr);
    rtcSetGeometryIntersectFunction(handle.get(), meet_gaussian);
    set_mask();
    rtcCommitGeometry(handle.get());
}

void UnfoldedVolumes::add(const Gaussians& set, const Placement& placement, unsigned geometry, unsigned instance) {
    Group group{&set, geometry, instance, {}, {}};
    std::copy(placement.to_world.begin(), placement.to_world.end(), group.to_world);
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 3; ++column)
            group.to_local[3 * row + column] = placement.normal_to_world[3 * column + row];
    const auto number = static_cast<std::uint32_t>(groups.size());
    groups.push_back(group);
    for (std::size_t i = 0; i < set.elements.size(); ++i) copies.push_back({number, static_cast<std::uint32_t>(i)});
}

void UnfoldedVolumes::commit(Answer answer) {
    handle = OwnedGeometry(rtcNewGeometry(device(), RTC_GEOMETRY_TYPE_USER));
    rtcSetGeometryUserPrimitiveCount(handle.get(), static_cast<unsigned>(copies.size()));
    rtcSetGeometryUserData(handle.get(), this);
    rtcSetGeometryBoundsFunction(handle.get(), unfolded_bounds, nullptr);
    rtcSetGeometryIntersectFunction(handle.get(), meet_unfolded);
    rtcSetGeometryMask(handle.get(), static_cast<unsigned>(answer));
    rtcCommitGeometry(handle.get());
}

void Scene::refuse_if_frozen() const {
    if (frozen_) throw std::invalid_argument("scene: in use already; add everything before firing or placing it");
}

void Scene::add(std::unique_ptr<Geometry> geometry, std::uint64_t n_elements) {
    check_embree("adding to a scene");
    geometry->first_element = n_own_elements_;
    n_own_elements_ += n_elements;
    own_.push_back(std::move(geometry));
}

void Scene::add_mesh(const MeshArrays& arrays, std::span<const SurfaceNoise> groups) {
    refuse_if_frozen();
    if (arrays.permeability.empty()) return;
    add(std::make_unique<Mesh>(arrays, groups), arrays.permeability.size());
    has_meshes_ = true;
    own_answers_ |= static_cast<unsigned>(arrays.answer);
    answers_ |= own_answers_;
    const auto above_zero = [](float value) { return value > 0; };
    is_random_ |= std::ranges::any_of(arrays.permeability, above_zero) ||
                  std::ranges::any_of(arrays.intensity_sigma, above_zero) || !arrays.labels.first.empty();
    for (const SurfaceNoise& group : groups) {
        max_sigma_m_ = std::max(max_sigma_m_, group.sigma_m(0, 0));  // at its cap
        max_sigma_per_m_ = std::max(max_sigma_per_m_, std::sqrt(group.share_squared));
    }
}

void Scene::add_gaussians(const GaussianArrays& arrays, StopLaw law, float tau) {
    refuse_if_frozen();
    if (arrays.stop.empty()) return;
    is_random_ = true;
    auto set = std::make_unique<Gaussians>(arrays, law, tau);
    max_sigma_m_ = std::max(max_sigma_m_, set->max_sigma_m);
    add(std::move(set), arrays.stop.size());
    own_answers_ |= static_cast<unsigned>(arrays.answer);
    answers_ |= own_answers_;
}

void Scene::place(std::shared_ptr<Scene> scene, const Affine& to_world, std::int32_t label,
                  std::int64_t first_element) {
    refuse_if_frozen();
    if (scene.get() == this) throw std::invalid_argument("scene: cannot be placed inside itself");
    if (scene->end_of_given_ > 0) throw std::invalid_argument("scene: has given numbers, which placing would change");
    scene->frozen_ = true;  // its element numbers must stay what they are
    max_sigma_m_ = std::max(max_sigma_m_, static_cast<float>(scene->max_sigma_m_ * largest_scale(to_world)));
    max_sigma_per_m_ = std::max(max_sigma_per_m_, scene->max_sigma_per_m_);
    if (first_element < 0) {
        n_placed_elements_ += scene->n_elements();
    } else {
        end_of_given_ = std::max(end_of_given_, static_cast<std::uint64_t>(first_element) + scene->n_elements());
    }
    has_meshes_ |= scene->has_meshes_;
    is_random_ |= scene->is_random_;
    answers_ |= scene->answers_;
    placed_.push_back({std::move(scene), to_world, label, first_element, inverse_transpose(to_world)});
}

std::vector<Volume> Scene::volumes() const {
    std::vector<Volume> out(n_elements());
    for (const auto& geometry : own_) {
        if (geometry->kind != Geometry::Kind::gaussians) continue;
        const auto& set = static_cast<const Gaussians&>(*geometry);
        for (const Gaussian& gaussian : set.elements) out[set.first_element + gaussian.number] = {&gaussian, set.law};
    }
    return out;
}

std::vector<std::int64_t> Scene::pulse_stretches() {
    std::lock_guard lock(building_);
    flatten();
    std::vector<std::int64_t> out;
    const auto add = [&](const Scene& scene, std::uint64_t first) {
        for (std::size_t i = 0; i < scene.own_.size(); ++i) {
            const Geometry& each = *scene.own_[i];
            if (each.answer != Answer::pulse) continue;
            const bool last = i + 1 == scene.own_.size();
            const std::uint64_t end = last ? scene.n_own_elements_ : scene.own_[i + 1]->first_element;
            const auto begin_at = static_cast<std::int64_t>(first + each.first_element);
            if (out.empty() || out.back() != begin_at) out.insert(out.end(), {begin_at, begin_at});
            out.back() = static_cast<std::int64_t>(first + end);
        }
    };
    add(*this, 0);
    for (const Placement& placement : flat_) add(*placement.scene, static_cast<std::uint64_t>(placement.first_element));
    return out;
}

// Appends a placed scene's own elements and those of everything placed in it, one level deep.
void Scene::flatten_into(std::vector<Placement>& out, const Placement& placed) {
    if (!placed.scene->own_.empty()) out.push_back(placed);
    for (const Placement& child : placed.scene->placed_) {
        const Affine to_world = compose(placed.to_world, child.to_world);
        const std::int32_t label = placed.label >= 0 ? placed.label : child.label;
        flatten_into(out, {child.scene, to_world, label, -1, inverse_transpose(to_world)});
    }
}

void Scene::flatten() {
    if (flattened_) return;
    std::vector<Placement> flat;
    std::uint64_t next = n_own_elements_;
    for (const Placement& child : placed_) {
        if (child.first_element >= 0 && static_cast<std::uint64_t>(child.first_element) < n_own_elements_)
            throw std::invalid_argument("first_element: is the number of another element");
        const std::size_t begin = flat.size();
        flatten_into(flat, child);
        std::uint64_t number = child.first_element < 0 ? next : static_cast<std::uint64_t>(child.first_element);
        for (std::size_t i = begin; i < flat.size(); ++i) {
            flat[i].first_element = static_cast<std::int64_t>(number);
            number += flat[i].scene->n_own_elements_;
        }
        if (child.first_element < 0) next = number;
        // A part with numbers of its own is a tile: it comes and goes whole, with the search tree that it has.
        for (std::size_t i = begin; i < flat.size(); ++i)
            flat[i].unfolds = child.first_element < 0 || flat[i].scene != child.scene;
    }
    flat_ = std::move(flat);
    unfold();
    flattened_ = true;
}

void Scene::unfold() {
    std::size_t total = 0;
    for (Placement& placement : flat_) {
        const auto& own = placement.scene->own_;
        placement.unfolds &=
            std::ranges::all_of(own, [](const auto& each) { return each->kind == Geometry::Kind::gaussians; });
        if (placement.unfolds) total += placement.scene->n_own_elements_;
    }
    if (total > most_unfolded_)
        for (Placement& placement : flat_) placement.unfolds = false;
    for (std::size_t i = 0; i < flat_.size() && total <= most_unfolded_; ++i) {
        if (!flat_[i].unfolds) continue;
        const auto& own = flat_[i].scene->own_;
        for (unsigned id = 0; id < own.size(); ++id) {
            const auto& set = static_cast<const Gaussians&>(*own[id]);
            unfolded_[set.answer == Answer::pulse].add(set, flat_[i], id, static_cast<unsigned>(own_.size() + i));
        }
    }
    for (const Answer answer : {Answer::sub_ray, Answer::pulse}) {
        UnfoldedVolumes& unfolded = unfolded_[answer == Answer::pulse];
        if (!unfolded.copies.empty()) unfolded.commit(answer);
    }
}

RTCScene Scene::own_embree(Purpose purpose) {
    std::lock_guard lock(building_);
    OwnedScene& scene = own_embree_[static_cast<int>(purpose)];
    if (!scene) {
        OwnedScene made = new_embree_scene(purpose);
        for (unsigned id = 0; id < own_.size(); ++id) rtcAttachGeometryByID(made.get(), own_[id]->handle.get(), id);
        rtcCommitScene(made.get());
        check_embree("building a scene");
        scene = std::move(made);  // only a whole one is kept: one without its tree has no hits
    }
    return scene.get();
}

RTCScene Scene::instanced_embree(Purpose purpose) {
    OwnedScene& scene = instanced_embree_[static_cast<int>(purpose)];
    if (scene) return scene.get();
    OwnedScene made = new_embree_scene(purpose);
    for (unsigned id = 0; id < own_.size(); ++id) rtcAttachGeometryByID(made.get(), own_[id]->handle.get(), id);
    for (std::size_t i = 0; i < flat_.size(); ++i) {
        if (flat_[i].unfolds) continue;
        OwnedGeometry instance(rtcNewGeometry(device(), RTC_GEOMETRY_TYPE_INSTANCE));
        rtcSetGeometryInstancedScene(instance.get(), flat_[i].scene->own_embree(purpose));
        float matrix[12];
        std::copy(flat_[i].to_world.begin(), flat_[i].to_world.end(), matrix);
        rtcSetGeometryTransform(instance.get(), 0, RTC_FORMAT_FLOAT3X4_ROW_MAJOR, matrix);
        rtcSetGeometryMask(instance.get(), flat_[i].scene->own_answers_);
        rtcCommitGeometry(instance.get());
        rtcAttachGeometryByID(made.get(), instance.get(), static_cast<unsigned>(own_.size() + i));
    }
    for (const UnfoldedVolumes& unfolded : unfolded_)
        if (!unfolded.copies.empty()) rtcAttachGeometry(made.get(), unfolded.handle.get());
    rtcCommitScene(made.get());
    check_embree("building a scene of instances");
    scene = std::move(made);
    return scene.get();
}

RTCScene Scene::embree(Purpose purpose) {
    std::lock_guard lock(building_);
    frozen_ = true;
    flatten();
    if (!has_meshes_)
        purpose = Purpose::fire;  // Gaussians are told of by their own callback; one structure serves both
    return flat_.empty() ? own_embree(purpose) : instanced_embree(purpose);
}

}  // namespace hedgerow
