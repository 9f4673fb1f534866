// SPDX-License-Identifier: Apache-2.0
// Pulses with width and the receiver.
#include <nanobind/stl/array.h>

#include <array>
#include <vector>

#include "bind/bind.hpp"
#include "pulse/fire_pulses.hpp"
#include "pulse/pulse_likelihood.hpp"

namespace hedgerow {
namespace {

std::vector<float> copied(std::span<const float> from) { return {from.begin(), from.end()}; }

void make_spot(Spot* self, const AnyArray& points, const AnyArray& cells, const AnyArray& share, bool round,
               const std::array<float, 2>& half_m, const std::array<float, 2>& tangent, float part_sigma) {
    const auto shares = values<float>(share, "share", -1);
    if (shares.empty() || shares.size() > kMaxSubRays) throw nb::value_error("share: expected 1 to 81 sub-rays");
    const auto n = static_cast<std::ptrdiff_t>(shares.size());
    const bool drawn = cells.size() > 0;
    new (self) Spot{copied(values<float>(points, "points", drawn ? 0 : n, 2)),
                    copied(values<float>(cells, "cells", drawn ? n : 0, 4)),
                    copied(shares),
                    round,
                    half_m,
                    tangent,
                    part_sigma};
    require_within(std::span<const float>(self->points), "points", 1e3);
    require_within(std::span<const float>(self->cells), "cells", 1e3);
    for (std::size_t i = 0; round && i < self->cells.size(); i += 4)
        if (self->cells[i] < 0 || self->cells[i + 1] < 0) throw nb::value_error("cells: squared radii are negative");
    require_within(std::span<const float>(half_m), "half_m", 1e3);
    require_within(std::span<const float>(tangent), "tangent", 1e3);
    require_within(std::span<const float>(&part_sigma, 1), "part_sigma", 1e3);
}

// How many returns a pulse can have.
int returns_per_pulse(const Receiver& receiver) {
    switch (receiver.mode) {
        case ReturnMode::strongest_and_last:
        case ReturnMode::strongest_and_second:
        case ReturnMode::strongest_and_last_or_second:
            return 2;
        case ReturnMode::all:
        case ReturnMode::waveform:
            return receiver.max_returns;
        default:
            return 1;
    }
}

bool records(const PulseSettings& settings) {
    return settings.receiver.mode == ReturnMode::waveform || settings.receiver.processing == Processing::detected;
}

bool is_in_paper(ReturnMode mode) {
    return mode == ReturnMode::first || mode == ReturnMode::strongest || mode == ReturnMode::last ||
           mode == ReturnMode::strongest_and_last;
}

void require_usable(const PulseSettings& settings) {
    require_limits(settings.limits);
    const int most = settings.receiver.max_returns;
    if (most < 1 || most > kMaxSubRays) throw nb::value_error("max_returns: must be from 1 to 81");
    if (settings.receiver.processing == Processing::paper && !is_in_paper(settings.receiver.mode))
        throw nb::value_error("processing: paper has modes first, strongest, last and strongest_and_last alone");
    const bool digital = records(settings);
    if (digital && !(settings.digitiser.fwhm_m > 0 && settings.digitiser.step_m > 0))
        throw nb::value_error("fwhm_m, step_m: must be above 0");
    if (digital && !(settings.digitiser.fwhm_m <= 1e4 * settings.digitiser.step_m))
        throw nb::value_error("fwhm_m: must be at most 10,000 steps");
    const Detector& detector = settings.detector;
    const float figures[] = {detector.threshold,    detector.softness,     detector.second_threshold,
                             detector.second_ratio, detector.separation_m, detector.false_alarms};
    for (const float figure : figures)
        if (!(figure >= 0 && figure <= 1e12f)) throw nb::value_error("detector: figures must be from 0 to 1e12");
    if (!(settings.light.falloff >= 0 && settings.light.falloff <= 10))
        throw nb::value_error("falloff: must be 0 to 10");
}

// What is kept besides the returns.
struct PulseDetails {
    bool sub_rays;              // what each sub-ray met
    std::int64_t first_sample;  // of the waveforms
    std::size_t n_samples;      // 0: no waveforms
};

// Columns of returns or of sub-rays.
struct PulseColumns {
    PulseColumns(std::size_t n, std::size_t columns)
        : range_m(n, columns), intensity(n, columns), label(n, columns), element(n, columns) {}

    Fresh<Table<float>> range_m, intensity;
    Fresh<Table<std::uint16_t>> label;
    Fresh<Table<std::int64_t>> element;
};

struct PulseAnswer {
    PulseColumns returns, sub_rays;
    Fresh<Table<float>> width_m, amplitude, samples;
};

PulseAnswer pulses_fired(Scene& scene, const HeldBeams& beams, const PulseSettings& settings,
                         const PulseDetails& details, int threads, const nb::object& progress) {
    require_usable(settings);
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    if (details.first_sample < -kMost || details.first_sample > kMost || details.n_samples > kMost)
        throw nb::value_error("first_sample, n_samples: too large");
    const bool digital = records(settings);
    const std::size_t n = beams.size(), per_pulse = static_cast<std::size_t>(returns_per_pulse(settings.receiver));
    PulseAnswer answer{{n, per_pulse},
                       {details.sub_rays ? n : 0, settings.spot.share.size()},
                       {digital ? n : 0, per_pulse},
                       {digital ? n : 0, per_pulse},
                       {digital && details.n_samples > 0 ? n : 0, details.n_samples}};
    const PulseColumns &echoes = answer.returns, &sub_rays = answer.sub_rays;
    const PulseOutput out{
        {static_cast<int>(per_pulse), echoes.range_m.values, echoes.intensity.values, echoes.label.values,
         echoes.element.values, answer.width_m.values, answer.amplitude.values},
        {sub_rays.range_m.values, sub_rays.intensity.values, sub_rays.label.values, sub_rays.element.values},
        {answer.samples.values, static_cast<std::ptrdiff_t>(details.first_sample), details.n_samples}};
    nb::gil_scoped_release release;
    fire_pulses(scene, beams, settings, threads, ticker(progress), out);
    return answer;
}

auto pulses_log_likelihood(Scene& scene, const HeldBeams& beams, const AnyArray& range_m, const Spot& spot,
                           RangeLimits limits, float min_sigma_m, int threads, const nb::object& progress) {
    const auto ranges = values<float>(range_m, "range_m", static_cast<std::ptrdiff_t>(beams.size()));
    require_limits(limits);
    require_numbers(ranges, "range_m");
    const Fresh<Column<double>> log_density(beams.size());
    {
        nb::gil_scoped_release release;
        pulse_log_likelihood(scene, beams, ranges, spot, limits, min_sigma_m, threads, ticker(progress),
                             log_density.values);
    }
    return log_density.get();
}

void bind_settings_of_pulses(nb::module_& m) {
    nb::enum_<ReturnMode>(m, "ReturnMode", "Which light becomes a return.")
        .value("first", ReturnMode::first)
        .value("strongest", ReturnMode::strongest)
        .value("last", ReturnMode::last)
        .value("second", ReturnMode::second)
        .value("strongest_and_last", ReturnMode::strongest_and_last)
        .value("strongest_and_second", ReturnMode::strongest_and_second)
        .value("strongest_and_last_or_second", ReturnMode::strongest_and_last_or_second)
        .value("all", ReturnMode::all)
        .value("waveform", ReturnMode::waveform);
    nb::enum_<Processing>(m, "Processing", "How light becomes a return: windows of light, rays, or detected echoes.")
        .value("light", Processing::light)
        .value("paper", Processing::paper)
        .value("detected", Processing::detected);
    nb::class_<Spot>(m, "Spot", "Where the sub-rays of a pulse go.")
        .def("__init__", make_spot, nb::kw_only(), nb::arg("points").noconvert(), nb::arg("cells").noconvert(),
             nb::arg("share").noconvert(), nb::arg("round"), nb::arg("half_m"), nb::arg("tangent"),
             nb::arg("part_sigma"));
    bind_settings(m, "LightModel", "How light falls with the range, and what unknown intensities count as.",
                  field("falloff_m", &LightModel::falloff_m), field("falloff", &LightModel::falloff),
                  field("unknown_intensity", &LightModel::unknown_intensity));
    bind_settings(m, "Receiver", "From the light of a pulse to its returns.", field("mode", &Receiver::mode),
                  field("processing", &Receiver::processing), field("cutoff_m", &Receiver::cutoff_m),
                  field("threshold", &Receiver::threshold), field("max_returns", &Receiver::max_returns));
    bind_settings(m, "Digitiser", "Pulse and clock of mode waveform.", field("fwhm_m", &Digitiser::fwhm_m),
                  field("step_m", &Digitiser::step_m));
    bind_settings(m, "Detector", "Which echoes a noisy threshold lets through.",
                  field("threshold", &Detector::threshold), field("softness", &Detector::softness),
                  field("second_threshold", &Detector::second_threshold),
                  field("second_ratio", &Detector::second_ratio), field("separation_m", &Detector::separation_m),
                  field("false_alarms", &Detector::false_alarms));
    bind_settings(m, "PulseSettings", "All that decides about the returns of pulses.",
                  field("spot", &PulseSettings::spot), field("light", &PulseSettings::light),
                  field("limits", &PulseSettings::limits), field("receiver", &PulseSettings::receiver),
                  field("digitiser", &PulseSettings::digitiser), field("detector", &PulseSettings::detector),
                  field("seed", &PulseSettings::seed));
    bind_settings(m, "PulseDetails", "What to keep besides the returns; n_samples 0 keeps no waveforms.",
                  field("sub_rays", &PulseDetails::sub_rays), field("first_sample", &PulseDetails::first_sample),
                  field("n_samples", &PulseDetails::n_samples));
}

}  // namespace

void bind_pulses(nb::module_& m) {
    bind_settings_of_pulses(m);
    bind_answer(m, "PulseColumns", "What pulses returned or sub-rays met, (N, R) each; nothing: inf, NaN, 0, -1.",
                field("range_m", &PulseColumns::range_m), field("intensity", &PulseColumns::intensity),
                field("label", &PulseColumns::label), field("element", &PulseColumns::element));
    bind_answer(m, "PulseAnswer", "Returns, nearest first; sub-rays, widths and waveforms are empty unless kept.",
                field("width_m", &PulseAnswer::width_m), field("amplitude", &PulseAnswer::amplitude),
                field("samples", &PulseAnswer::samples))
        .def_ro("returns", &PulseAnswer::returns)
        .def_ro("sub_rays", &PulseAnswer::sub_rays);
    m.def("fire_pulses", pulses_fired, nb::arg("scene"), nb::arg("beams"), nb::arg("settings"), nb::arg("details"),
          nb::kw_only(), nb::arg("threads"), nb::arg("progress").none(), "Returns of pulses with width.");
    m.def("pulse_log_likelihood", pulses_log_likelihood, nb::arg("scene"), nb::arg("beams"), nb::kw_only(),
          nb::arg("range_m").noconvert(), nb::arg("spot"), nb::arg("limits"), nb::arg("min_sigma_m"),
          nb::arg("threads"), nb::arg("progress").none(), "Log density of the first return of each pulse with width.");
}

}  // namespace hedgerow
