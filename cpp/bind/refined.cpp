// SPDX-License-Identifier: Apache-2.0
// What refines Gaussians: expectation maximisation on the ray likelihood, and the gradient of the loss.
#include <nanobind/stl/tuple.h>

#include <algorithm>

#include "bind/bind.hpp"
#include "learn/loss_gradient.hpp"
#include "learn/ray_sums.hpp"

namespace hedgerow {
namespace {

// These sum over the elements of the scene itself; those of placed scenes have a frame of their own.
void require_own(const Scene& scene, std::span<const float> range_m, const RayModel& model) {
    if (scene.has_placed()) throw nb::value_error("scene: holds placed scenes, which cannot be refined");
    require_limits(model.limits);
    require_numbers(range_m, "range_m");
}

auto ray_sums_of(Scene& scene, const HeldBeams& beams, const AnyArray& range_m, const RayModel& model, int threads,
                 const nb::object& progress, bool stops_alone) {
    const auto ranges = values<float>(range_m, "range_m", static_cast<std::ptrdiff_t>(beams.size()));
    require_own(scene, ranges, model);
    const Fresh<Table<std::int64_t>> sums(scene.n_elements(), stops_alone ? kStopSums : kRaySums);
    const Fresh<Column<double>> log_density(beams.size());
    std::ranges::fill(sums.values, 0);
    {
        nb::gil_scoped_release release;
        ray_sums(scene, beams, ranges, model, threads, ticker(progress), sums.values, log_density.values);
    }
    return std::make_tuple(sums.get(), log_density.get());
}

auto loss_gradient_of(Scene& scene, const HeldBeams& beams, const AnyArray& range_m, const RayModel& model,
                      const LossWeights& weights, int threads, const nb::object& progress) {
    const auto ranges = values<float>(range_m, "range_m", static_cast<std::ptrdiff_t>(beams.size()));
    require_own(scene, ranges, model);
    const Fresh<Table<std::int64_t>> sums(scene.n_elements(), kLossSums);
    const Fresh<Rows3<double>> scores(beams.size(), 3);
    std::ranges::fill(sums.values, 0);
    {
        nb::gil_scoped_release release;
        loss_gradient(scene, beams, ranges, model, weights, threads, ticker(progress), sums.values, scores.values);
    }
    return std::make_tuple(sums.get(), scores.get());
}

}  // namespace

void bind_refined(nb::module_& m) {
    nb::enum_<RaySum>(m, "RaySum", nb::is_arithmetic(), "Columns of ray_sums, in fixed point.")
        .value("hits", kHits)
        .value("passes", kPasses)
        .value("slope", kSlope)
        .value("curve", kCurve)
        .value("depth", kDepth)
        .value("offset_m", kPointX, "Three.")
        .value("square_m2", kPointXX, "Six: lower triangle by rows.")
        .value("end", kRaySums, "Number of columns.");
    nb::enum_<LossSum>(m, "LossSum", nb::is_arithmetic(), "Columns of loss_gradient, in fixed point.")
        .value("mean", kSlopeMean, "Three.")
        .value("shape", kSlopeShape, "Six: lower triangle by rows.")
        .value("stop", kSlopeStop)
        .value("hits", kShare)
        .value("end", kLossSums, "Number of columns.");
    m.attr("FIXED_POINT") = kFixed;
    bind_settings(m, "RayModel", "What the density of a range needs besides the elements.",
                  field("limits", &RayModel::limits), field("min_sigma_m", &RayModel::min_sigma_m),
                  field("outlier_share", &RayModel::outlier_share));
    bind_settings(m, "LossWeights", "How errors weigh beside the likelihood.",
                  field("error_nat_per_m", &LossWeights::error_nat_per_m),
                  field("lost_hit_nat", &LossWeights::lost_hit_nat),
                  field("false_hit_nat", &LossWeights::false_hit_nat));
    m.def(
        "ray_sums", ray_sums_of, nb::arg("scene"), nb::arg("beams"), nb::kw_only(), nb::arg("range_m").noconvert(),
        nb::arg("model"), nb::arg("threads"), nb::arg("progress").none(), nb::arg("stops_alone") = false,
        "One round's sums per element (columns RaySum; with stops_alone hits and passes only), and the log density of "
        "each measured range.");
    m.def("loss_gradient", loss_gradient_of, nb::arg("scene"), nb::arg("beams"), nb::kw_only(),
          nb::arg("range_m").noconvert(), nb::arg("model"), nb::arg("weights"), nb::arg("threads"),
          nb::arg("progress").none(),
          "Slopes of the cost of the beams by each element (columns LossSum), and per beam: log density, "
          "probability of a return, expected error.");
}

}  // namespace hedgerow
