// SPDX-License-Identifier: Apache-2.0
// The scene: triangle meshes, Gaussian ellipsoids, and placed copies of other scenes.
//
// Elements (triangles and Gaussians) are numbered through: first the scene's own, in the order they were added,
// then those of each placed scene, in the order of placing, by the same rule. An instanced scene and its
// flattened copy therefore number, and randomise, alike. A placed scene can be given numbers of its own instead, so
// that a part of a world numbers, and randomises, as the whole.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/embree.hpp"
#include "scene/label_mix.hpp"

namespace hedgerow {

// How a Gaussian decides whether a ray that meets it passes.
enum class StopLaw : int {
    permeability,  // with constant probability `stop`
    extinction,    // with probability exp(-stop * sigma_t * exp(-dist^2 / 2)), `stop` in 1/m
    depth,  // with probability exp(-stop * (1 - dist^2 / tau^2)^2): alike from all sides, nothing is cut off at tau
};

// Range noise of a group of triangles: variance0 + (share range)^2 + variance_a (sin / cos^2)^2 of the incidence angle
// [m^2].
struct SurfaceNoise {
    float variance0, variance_a;
    float min_cosine;     // the angle is capped here, so that grazing rays keep a finite variance
    float share_squared;  // of the range
    float sigma_m(float cosine, float range_m) const {
        const float c = std::max(cosine, min_cosine), c_squared = c * c;
        return std::sqrt(variance0 + share_squared * range_m * range_m +
                         variance_a * (1 - c_squared) / (c_squared * c_squared));
    }
};

// What of a pulse with width an element answers. Learned elements hold the width of the beam that taught them, so the
// axis of the pulse meets them, once; meshes have no width in them, so each sub-ray meets them. Values are Embree's ray
// masks.
enum class Answer : unsigned { sub_ray = 1, pulse = 2 };

// What a return carries besides its range; each array has one entry per element.
struct MeshArrays {
    std::span<const float> vertices;           // 3 per vertex
    std::span<const std::uint32_t> triangles;  // 3 per triangle
    std::span<const float> permeability;
    std::span<const std::uint16_t> label;
    std::span<const float> reflectance;
    std::span<const float> intensity_sigma;
    std::span<const std::uint8_t> noise_group;
    bool lambertian;  // whether intensity falls with the cosine of the incidence angle
    Answer answer;
    LabelArrays labels;  // of triangles that have several
};

struct GaussianArrays {
    std::span<const float> mean;       // 3 each
    std::span<const float> whitening;  // 6 each: lower triangle W by rows, inverse covariance = W' W
    std::span<const float> stop;
    std::span<const std::uint16_t> label;
    std::span<const float> intensity;
    std::span<const float> intensity_sigma;
    Answer answer;
    LabelArrays labels;  // of elements that have several
};

struct Geometry {
    enum class Kind { mesh, gaussians } kind;
    Answer answer;
    OwnedGeometry handle;
    std::uint64_t first_element = 0;  // within the scene that owns it
    LabelMix label_mix;               // of elements that are mixed
    virtual ~Geometry() = default;

  protected:
    Geometry(Kind kind, Answer answer, const LabelArrays& labels) : kind(kind), answer(answer), label_mix(labels) {}
    void set_mask() const { rtcSetGeometryMask(handle.get(), static_cast<unsigned>(answer)); }
};

// What a triangle is, apart from where: one cache line has it all.
struct Finish {
    float permeability;
    float reflectance;
    float intensity_sigma;
    std::uint16_t label;
    std::uint8_t noise_group;
    bool mixed;  // whether it has several labels
    bool operator==(const Finish&) const = default;
};

class Mesh final : public Geometry {
  public:
    Mesh(const MeshArrays& arrays, std::span<const SurfaceNoise> groups);
    const Finish& finish(unsigned triangle) const { return finishes_[uniform_ ? 0 : triangle]; }
    const SurfaceNoise& noise(const Finish& finish) const { return groups_[finish.noise_group]; }
    float intensity(const Finish& finish, float cosine) const {
        return finish.reflectance * (lambertian_ ? cosine : 1);
    }

  private:
    std::vector<Finish> finishes_;  // one entry if all triangles are alike
    bool uniform_;
    bool lambertian_;
    std::vector<SurfaceNoise> groups_;
};

struct Gaussian {
    float mean[3];
    float whitening[6];
    float stop;
    float intensity, intensity_sigma;
    std::uint32_t number;  // its place in the arrays as given
    std::uint16_t label;
    bool mixed;  // whether it has several labels
};

struct Gaussians final : Geometry {
    Gaussians(const GaussianArrays& arrays, StopLaw law, float tau);
    StopLaw law;
    float tau_squared, per_tau_squared;
    std::vector<Gaussian> elements;  // along a Morton curve: what one ray meets lies close together in memory
    float max_sigma_m = 0;           // largest axis of any element
};

// An element as its number finds it; triangles have no Gaussian.
struct Volume {
    const Gaussian* gaussian = nullptr;
    StopLaw law = StopLaw::permeability;
};

using Affine = std::array<double, 12>;  // 3x4 by rows, local to world
Affine compose(const Affine& outer, const Affine& inner);

class Scene;

struct Placement {
    std::shared_ptr<Scene> scene;
    Affine to_world;
    std::int32_t label;                    // replaces the labels of its elements; -1 keeps them
    std::int64_t first_element;            // -1: as it comes
    std::array<float, 9> normal_to_world;  // inverse transpose of the linear part, by rows
    bool unfolds = false;                  // whether its Gaussians stand in the world's own search tree

    std::array<float, 3> normal_in_world(const float normal[3]) const {
        std::array<float, 3> out;
        for (int row = 0; row < 3; ++row)
            out[row] = normal_to_world[3 * row] * normal[0] + normal_to_world[3 * row + 1] * normal[1] +
                       normal_to_world[3 * row + 2] * normal[2];
        return out;
    }
};

// Copies of Gaussians as one geometry in the world, in the place of Embree's instances: boxes of placed plants overlap,
// and a ray that enters and leaves each of them takes twice as long as one search tree over all their elements. A copy
// is eight bytes here, the Gaussians themselves are shared.
struct UnfoldedVolumes {
    struct Group {  // the copies that one placement makes of one set
        const Gaussians* set;
        unsigned geometry, instance;  // what Embree would call them
        float to_world[12], to_local[9];
    };
    struct Copy {
        std::uint32_t group, gaussian;
    };
    OwnedGeometry handle;
    std::vector<Group> groups;
    std::vector<Copy> copies;
    void add(const Gaussians& set, const Placement& placement, unsigned geometry, unsigned instance);
    void commit(Answer answer);  // after everything has been added
};

// The label of an element with this label of its own.
inline std::uint16_t label_under(const Placement* placement, std::uint16_t own) {
    return placement && placement->label >= 0 ? static_cast<std::uint16_t>(placement->label) : own;
}

// Embree is faster without filter functions: firing at opaque meshes needs none, but to be told of every triangle on
// the way takes one. So each purpose has its own acceleration structures, built when first needed.
enum class Purpose { fire, pierce };

class Scene {
  public:
    void add_mesh(const MeshArrays& arrays, std::span<const SurfaceNoise> groups);
    void add_gaussians(const GaussianArrays& arrays, StopLaw law, float tau);
    // first_element: number of its first element, not below the scene's own; -1 numbers through.
    void place(std::shared_ptr<Scene> scene, const Affine& to_world, std::int32_t label, std::int64_t first_element);

    // Placed Gaussians are unfolded if all copies together are at most this many; 0 never. Before building.
    void unfold_up_to(std::size_t most) { most_unfolded_ = most; }

    // What to trace rays through; built once. A scene that is built or placed is frozen.
    RTCScene embree(Purpose purpose);

    // One more than the highest number of an element.
    std::uint64_t n_elements() const { return std::max(n_own_elements_ + n_placed_elements_, end_of_given_); }
    std::size_t n_placements() const { return flat_.size(); }
    bool has_placed() const { return !placed_.empty(); }
    bool has_meshes() const { return has_meshes_; }  // here or in anything placed
    // Whether anything here, or in anything placed, answers that.
    bool answers(Answer answer) const { return (answers_ & static_cast<unsigned>(answer)) != 0; }
    // Whether anything here draws: opaque meshes of exact intensity do not, and spare the numbers.
    bool is_random() const { return is_random_; }
    // No element at range r draws ranges with a larger deviation than the first plus r times the second.
    float max_sigma_m() const { return max_sigma_m_; }
    float max_sigma_per_m() const { return max_sigma_per_m_; }

    // Begin and end of each stretch of numbers whose elements answer pulses, ascending.
    std::vector<std::int64_t> pulse_stretches();

    // The scene's own elements by their numbers.
    std::vector<Volume> volumes() const;

    // Geometry and placement (nullptr: the scene's own) that an Embree hit names.
    const Placement* placement(unsigned instance) const {
        return instance == RTC_INVALID_GEOMETRY_ID ? nullptr : &flat_[instance - own_.size()];
    }
    const Geometry& geometry(const Placement* placement, unsigned id) const {
        return placement ? *placement->scene->own_[id] : *own_[id];
    }
    std::uint64_t first_element(unsigned instance) const {
        return instance == RTC_INVALID_GEOMETRY_ID
                   ? 0
                   : static_cast<std::uint64_t>(flat_[instance - own_.size()].first_element);
    }

  private:
    void refuse_if_frozen() const;
    void add(std::unique_ptr<Geometry> geometry, std::uint64_t n_elements);
    static void flatten_into(std::vector<Placement>& out, const Placement& placed);
    void unfold();
    RTCScene own_embree(Purpose purpose);
    RTCScene instanced_embree(Purpose purpose);
    void flatten();

    std::vector<std::unique_ptr<Geometry>> own_;
    std::vector<Placement> placed_;  // as given; may be nested
    std::vector<Placement> flat_;    // one level: Embree's instances, in the order of their ids
    UnfoldedVolumes unfolded_[2];    // of those that answer sub-rays, and of those that answer pulses
    std::size_t most_unfolded_ = 0;
    std::uint64_t n_own_elements_ = 0, n_placed_elements_ = 0;  // the latter without given numbers
    std::uint64_t end_of_given_ = 0;                            // one more than the highest of the given numbers
    float max_sigma_m_ = 0, max_sigma_per_m_ = 0;
    OwnedScene own_embree_[2];        // by purpose: own geometry; traced if nothing is placed, else instanced by others
    OwnedScene instanced_embree_[2];  // by purpose: own geometry and instances, if something is placed
    bool has_meshes_ = false;         // here or in anything placed
    bool is_random_ = false;          // here or in anything placed
    unsigned own_answers_ = 0, answers_ = 0;  // as bits: of its own elements; also of anything placed
    bool flattened_ = false;
    bool frozen_ = false;
    std::recursive_mutex building_;
};

}  // namespace hedgerow
