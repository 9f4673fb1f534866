// SPDX-License-Identifier: Apache-2.0
// Remembered points: which of them a beam sees (Browning 2012 §4.2).
//
// A beam sees the points whose distance from its line is below a reach. Points lie along a Morton curve, and Embree
// holds a box around each run of two. Measured on 4 M points of a site: a box each takes 107 bytes per point in Embree
// and traces 6 M beams/s, runs of two 43 bytes and 3.5 M/s, of four 21 bytes and 1.3 M/s.
// Equations: docs/models.md §4.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scene/scene.hpp"
#include "trace/batch.hpp"
#include "trace/fire.hpp"

namespace hedgerow {

struct PointArrays {
    std::span<const float> position;  // 3 per point, in the frame of the scene
    std::span<const float> normal;    // 3 per point, unit length
    std::span<const float> intensity;
    std::span<const std::uint16_t> label;
};

class PointCloud {
  public:
    // The points are numbered from `first`, in the order of the arrays.
    PointCloud(const PointArrays& arrays, float reach_m, std::int64_t first);

    static constexpr std::size_t kRun = 2;  // points in a box

    struct Place {
        float position[3];
        std::uint32_t number;  // its place in the arrays as given
    };
    struct Finish {
        float normal[3];
        float intensity;
        std::uint16_t label;
    };

    std::size_t size() const { return finishes_.size(); }
    std::int64_t first() const { return first_; }
    float reach_m() const { return reach_m_; }
    RTCScene embree() const { return scene_.get(); }
    std::span<const Place> run(std::size_t index) const {
        return std::span(places_).subspan(kRun * index, std::min(kRun, places_.size() - kRun * index));
    }
    const Finish& finish(std::uint32_t number) const { return finishes_[number]; }

  private:
    std::vector<Place> places_;     // along the Morton curve
    std::vector<Finish> finishes_;  // as given
    float reach_m_;
    std::int64_t first_;
    OwnedGeometry geometry_;
    OwnedScene scene_;
};

enum class Pick { nearest, first };  // the point nearest to the line of the beam, or the first along it

// One entry per beam; a beam that sees no point has element -1, range inf, label 0 and NaN for the rest.
struct SeenArrays {
    std::span<std::int64_t> element;
    std::span<float> mean_m;   // where along the beam the point stands
    std::span<float> sigma_m;  // standard deviation of the range that it returns
    std::span<float> intensity;
    std::span<std::uint16_t> label;
    std::span<float> incidence_cosine;
};

// The point that each beam sees between the limits. All clouds have one frame; of equals the lower number wins, if the
// clouds are given in the order of their numbers.
void see_points(std::span<const std::shared_ptr<PointCloud>> clouds, const BeamArrays& beams, RangeLimits limits,
                Pick pick, const SurfaceNoise& noise, int threads, const Tick& tick, const SeenArrays& out);

}  // namespace hedgerow
