// SPDX-License-Identifier: Apache-2.0
#include "pulse/fire_pulses.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "trace/shade.hpp"

namespace hedgerow {
namespace {

// Stream of random numbers; 0 has the coins of the sub-rays, 1 belongs to `first_behind`, 2 to the stencil.
constexpr std::uint32_t kNoiseStream = 3;

// The plane of a triangle is followed until the range changes by this many spot widths: rays along a plane see its end.
constexpr float kSteepest = 200;

template <typename Arrays>
void write_miss(const Arrays& out, std::size_t i) {
    out.range_m[i] = std::numeric_limits<float>::infinity();
    out.intensity[i] = kUnknown;
    out.label[i] = 0;
    out.element[i] = -1;
}

// What a ray met: an element, where in it the ray ended, and how bright that was.
struct Met {
    Hit hit;
    float range_m, intensity;
    float slant_m;
    bool certain;
};

// What the axis of a pulse met among the elements that answer pulses.
struct AxisMet {
    bool stopped;
    Met met;
};

// The pulses of a chunk, a block at a time.
class BlockTracer {
  public:
    BlockTracer(const Scene& scene, RTCScene embree, const BeamArrays& beams, const PulseSettings& settings,
                const PulseOutput& out)
        : scene_(scene),
          embree_(embree),
          beams_(beams),
          settings_(settings),
          out_(out),
          context_(scene),
          rays_(fresh_rays()),
          light_(kBlock * static_cast<std::size_t>(settings.spot.size())) {
        context_.coins = &random_;
        if (detects())
            waveform_.emplace(settings.digitiser, kDetectedReach);
        else if (settings.receiver.mode == ReturnMode::waveform)
            waveform_.emplace(settings.digitiser, kWholeReach);
    }

    void run(Chunk chunk) {
        const BeamOrder order(beams_, chunk);
        const std::size_t n = chunk.end - chunk.begin;
        for (std::size_t begin = 0; begin < n; begin += kBlock) {
            n_pulses_ = std::min(kBlock, n - begin);
            for (std::size_t i = 0; i < n_pulses_; ++i) axes_.set(i, beams_, order[begin + i]);
            trace();
            for (std::size_t i = 0; i < n_pulses_; ++i) receive_pulse(i);
        }
    }

  private:
    bool detects() const { return settings_.receiver.processing == Processing::detected; }

    // What the axes meet comes first: nothing behind it is seen by any sub-ray.
    void trace() {
        std::fill_n(far_m_, n_pulses_, settings_.limits.max_m);
        for (std::size_t i = 0; i < n_pulses_; ++i) axis_[i].stopped = false;
        if (scene_.answers(Answer::pulse)) trace_axes();
        if (!scene_.answers(Answer::sub_ray)) return fill_from_axes();
        for_sub_rays(axes_, n_pulses_, settings_.spot, [&](const SubRays& sub_rays, int count, std::size_t first) {
            aim(settings_.spot, axes_, sub_rays, settings_.seed, far_m_, rays_);
            Lanes<float> cosine;
            intersect_packet(sub_rays, cosine);
            for (int lane = 0; lane < count; ++lane) store(sub_rays, lane, cosine[lane], light_[first + lane]);
        });
    }

    void intersect_packet(const SubRays& sub_rays, Lanes<float>& cosine) {
        for (std::uint64_t& nearest : context_.nearest.at) nearest = ~std::uint64_t{0};
        if (scene_.is_random()) random_.draw(settings_.seed, sub_rays.pulse, sub_rays.number);
        intersect(sub_rays.valid, embree_, context_, rays_);
        incidence_cosines<kLanes>(scene_, rays_, cosine);
    }

    void trace_axes() {
        SubRays axes;
        for (std::size_t first = 0; first < n_pulses_; first += kLanes) {
            aim_axes(axes_, first, n_pulses_, settings_.limits.max_m, axes, rays_);
            Lanes<float> cosine;
            intersect_packet(axes, cosine);
            for (int lane = 0; lane < kLanes && first + lane < n_pulses_; ++lane) {
                if (!is_hit(rays_, lane)) continue;
                far_m_[first + lane] = rays_.ray.tfar[lane];
                axis_[first + lane] = {true, met(lane, cosine[lane])};
                axis_[first + lane].met.certain = true;
            }
        }
    }

    // No sub-ray meets anything of its own.
    void fill_from_axes() {
        const int s = settings_.spot.size();
        for (std::size_t i = 0; i < n_pulses_; ++i)
            for (int number = 0; number < s; ++number)
                keep(i, number, axis_[i].stopped ? &axis_[i].met : nullptr, light_[i * s + number]);
    }

    void store(const SubRays& sub_rays, int lane, float cosine, Reflection& out) {
        const auto i = static_cast<std::size_t>(sub_rays.at[lane]);
        if (is_hit(rays_, lane)) {
            Met found = met(lane, cosine);
            if (waveform_ && found.hit.noise) found.slant_m = slant_m(lane, i, found.range_m);
            return keep(i, sub_rays.number[lane], &found, out);
        }
        keep(i, sub_rays.number[lane], axis_[i].stopped ? &axis_[i].met : nullptr, out);
    }

    // Where in a volume a ray ends is geometry, and each draws its own. The noise of the electronics is one per return:
    // the mean of nine draws would be a third of it.
    Met met(int lane, float cosine) const {
        const Hit hit = hit_of(scene_, rays_, lane, cosine, random_.key_a[lane]);
        return {hit, hit.range_m + hit.spread_m * random_.normal[lane],
                hit.drawn_intensity(random_.second_normal[lane]), 0.0f, false};
    }

    // How far the range varies (1 sigma) over a sub-ray's part of the spot, on the plane of the triangle that it met. A
    // Gaussian has none.
    float slant_m(int lane, std::size_t i, float range_m) const {
        const float along = rays_.hit.Ng_x[lane] * rays_.ray.dir_x[lane] +
                            rays_.hit.Ng_y[lane] * rays_.ray.dir_y[lane] + rays_.hit.Ng_z[lane] * rays_.ray.dir_z[lane];
        const auto across = [&](const float axis[3][kBlock], int k) {
            const float slope = rays_.hit.Ng_x[lane] * axis[0][i] + rays_.hit.Ng_y[lane] * axis[1][i] +
                                rays_.hit.Ng_z[lane] * axis[2][i];
            return slope * (settings_.spot.half_m[k] + settings_.spot.tangent[k] * range_m);
        };
        const float left = across(axes_.left, 0), up = across(axes_.up, 1);
        const float slope = std::sqrt(left * left + up * up);
        if (!(slope > 0)) return 0;
        return settings_.spot.part_sigma * slope / std::max(std::fabs(along), slope / kSteepest);
    }

    // What a sub-ray brings back of what it met, or of what the axis met for it.
    void keep(std::size_t i, std::size_t s, const Met* met, Reflection& out) {
        const std::size_t kept = axes_.beam[i] * static_cast<std::size_t>(settings_.spot.size()) + s;
        const bool keeps = !out_.sub_rays.range_m.empty();
        out.range_m = kFarthest;
        if (keeps) write_miss(out_.sub_rays, kept);
        if (!met || !settings_.limits.contain(met->range_m)) return;  // the sensor does not look there
        const bool known = !std::isnan(met->intensity);
        const float share = settings_.spot.share[s];
        const float reflected = known ? met->intensity : settings_.light.unknown_intensity;
        const Hit& hit = met->hit;
        out = {met->range_m, share * reflected * settings_.light.at(met->range_m),
               share,        hit.cosine,
               met->slant_m, hit.noise,
               hit.label,    known,
               met->certain, hit.element};
        if (!keeps) return;
        out_.sub_rays.range_m[kept] = met->range_m;
        out_.sub_rays.intensity[kept] = met->intensity;
        out_.sub_rays.label[kept] = hit.label;
        out_.sub_rays.element[kept] = hit.element;
    }

    // The light of a pulse, nearest first, to returns. A pulse counts if any of its sub-rays met something.
    //
    // WEATHER would enter here, before the receiver: each reflection's light times exp(-2 alpha range) for what rain,
    // fog or dust take away, and further reflections for what drops and flakes send back.
    void receive_pulse(std::size_t i) {
        const auto s = static_cast<std::size_t>(settings_.spot.size());
        const auto begin = light_.begin() + static_cast<std::ptrdiff_t>(i * s);
        const auto end = std::partition(begin, begin + static_cast<std::ptrdiff_t>(s),
                                        [](const Reflection& each) { return each.range_m < kFarthest; });
        std::sort(begin, end, [](const Reflection& a, const Reflection& b) {
            return a.range_m != b.range_m ? a.range_m < b.range_m : a.element < b.element;
        });
        std::span<Reflection> light(begin, end);
        if (detects()) light = light.first(join_close(light, settings_.digitiser.fwhm_m));
        if (waveform_) {
            waveform_->record(light);
            find_echoes(axes_.pulse[i], light);
            const SampleArrays& kept = out_.waveforms;
            const std::size_t first = axes_.beam[i] * kept.per_pulse;
            if (!kept.samples.empty()) waveform_->copy_to(kept.samples.subspan(first, kept.per_pulse), kept.first);
        } else {
            receive(settings_.receiver, light, echoes_);
        }
        write(axes_.pulse[i], axes_.beam[i]);
    }

    void find_echoes(std::uint64_t pulse, std::span<const Reflection> light) {
        const Receiver& receiver = settings_.receiver;
        if (!detects()) return waveform_->peaks(light, receiver.threshold, receiver.max_returns, echoes_);
        waveform_->peaks(light, 0.0f, kMaxSubRays, echoes_);
        detection_.choose(receiver, settings_.limits, settings_.seed, pulse, echoes_);
    }

    // The electronics add their noise; what it carries out of the sensor's sight is lost.
    void write(std::uint64_t pulse, std::size_t beam) {
        int count = 0;
        for (int k = 0; k < echoes_.count; ++k) {
            Echo echo = echoes_.at[k];
            const float sigma_m = echo.noise ? echo.noise->sigma_m(echo.cosine, echo.range_m) : 0;
            if (sigma_m > 0) {
                const Words4 words = philox(settings_.seed, pulse, echo.draw, kNoiseStream);
                echo.range_m += sigma_m * normal_pair(words.at[0], words.at[1]).first;
            }
            if (settings_.limits.contain(echo.range_m)) echoes_.at[count++] = echo;
        }
        const auto nearer = [](const Echo& a, const Echo& b) { return a.range_m < b.range_m; };
        if (count > 1) std::stable_sort(echoes_.at.begin(), echoes_.at.begin() + count, nearer);
        const std::size_t first = beam * static_cast<std::size_t>(out_.echoes.per_pulse);
        for (int k = 0; k < out_.echoes.per_pulse; ++k) {
            const std::size_t at = first + static_cast<std::size_t>(k);
            const bool found = k < count;
            if (!out_.echoes.width_m.empty()) out_.echoes.width_m[at] = found ? echoes_.at[k].width_m : kUnknown;
            if (!out_.echoes.amplitude.empty()) out_.echoes.amplitude[at] = found ? echoes_.at[k].amplitude : kUnknown;
            if (!found) {
                write_miss(out_.echoes, at);
                continue;
            }
            out_.echoes.range_m[at] = echoes_.at[k].range_m;
            out_.echoes.intensity[at] = echoes_.at[k].intensity;
            out_.echoes.label[at] = echoes_.at[k].label;
            out_.echoes.element[at] = echoes_.at[k].element;
        }
    }

    static constexpr float kFarthest = std::numeric_limits<float>::infinity();

    const Scene& scene_;
    RTCScene embree_;
    const BeamArrays& beams_;
    const PulseSettings& settings_;
    const PulseOutput& out_;
    PacketContext<> context_;
    PacketRandom<> random_{};  // zeros, if the scene draws nothing
    RTCRayHit8 rays_;
    std::size_t n_pulses_ = 0;
    Axes axes_;
    AxisMet axis_[kBlock]{};
    float far_m_[kBlock];            // how far the sub-rays of each pulse go
    std::vector<Reflection> light_;  // of the block's sub-rays; range inf where nothing was met
    std::optional<Waveform> waveform_;
    Detection detection_{settings_.detector};
    Echoes echoes_;
};

}  // namespace

void fire_pulses(Scene& scene, const BeamArrays& beams, const PulseSettings& settings, int threads, const Tick& tick,
                 const PulseOutput& out) {
    require_masks(scene);
    const RTCScene embree = scene.embree(Purpose::fire);
    for_chunks(beams, threads, tick, [&](Chunk chunk) { BlockTracer(scene, embree, beams, settings, out).run(chunk); });
}

}  // namespace hedgerow
