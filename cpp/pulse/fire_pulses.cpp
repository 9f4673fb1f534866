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

// Streams of random numbers; 0 has the coins of the sub-rays, 1 belongs to `first_behind`.
constexpr std::uint32_t kStencilStream = 2, kNoiseStream = 3;

constexpr std::size_t kBlock = 64;  // pulses traced before their light is received: whole packets for any stencil

// The pulses of a block in the scene's frame, by columns: packets gather their lanes from them.
struct Axes {
    float origin[3][kBlock], forward[3][kBlock], left[3][kBlock], up[3][kBlock];
    std::uint64_t pulse[kBlock];
    std::size_t beam[kBlock];

    void set(std::size_t i, const BeamArrays& beams, std::size_t from) {
        float d[3];
        for (int axis = 0; axis < 3; ++axis) {
            origin[axis][i] = static_cast<float>(beams.origin_m[3 * from + axis] - beams.scene_origin_m[axis]);
            d[axis] = forward[axis][i] = beams.direction[3 * from + axis];
        }
        // Left is horizontal, up perpendicular to it and to the beam; straight up or down the y axis serves as left.
        const float flat = std::sqrt(d[0] * d[0] + d[1] * d[1]);
        const bool steep = flat < 1e-6f;
        const float x = steep ? 0 : -d[1] / flat, y = steep ? 1 : d[0] / flat;
        left[0][i] = x, left[1][i] = y, left[2][i] = 0;
        up[0][i] = -d[2] * y, up[1][i] = d[2] * x, up[2][i] = d[0] * y - d[1] * x;
        pulse[i] = static_cast<std::uint64_t>(beams.pulse[from]);
        beam[i] = from;
    }
};

// Which sub-rays of which pulses are in a packet.
struct SubRays {
    Lanes<std::int32_t> at;  // the pulse's place in the block
    Lanes<std::uint64_t> pulse;
    Lanes<std::uint32_t> number;
    alignas(32) int valid[kLanes];
};

// Points of the unit spot, drawn from the sub-rays' cells.
void draw_points(const Spot& spot, const SubRays& sub_rays, std::uint64_t seed, Lanes<float>& left, Lanes<float>& up) {
    for (int lane = 0; lane < kLanes; ++lane) {
        const Words4 words = philox(seed, sub_rays.pulse[lane], sub_rays.number[lane], kStencilStream);
        const float* cell = &spot.cells[4 * sub_rays.number[lane]];
        const float a = cell[0] + (cell[1] - cell[0]) * open_unit(words.at[0]);
        const float b = cell[2] + (cell[3] - cell[2]) * open_unit(words.at[1]);
        if (!spot.round) {
            left[lane] = a, up[lane] = b;
            continue;
        }
        const float radius = std::sqrt(a), turns = b - std::floor(b);
        const float sine_turns = turns < 0.25f ? turns + 0.75f : turns - 0.25f;  // sin(x) = cos(x - 1/4 turn)
        left[lane] = radius * cos_turns(turns);
        up[lane] = radius * cos_turns(sine_turns);
    }
}

// A tilted ray starts where the aperture has the point that the spot has at 1 m. The axis stays exactly what it is.
void aim(const Spot& spot, const Axes& axes, const SubRays& sub_rays, const Lanes<float>& left, const Lanes<float>& up,
         float far_m, RTCRayHit8& rays) {
    float* const origins[3] = {rays.ray.org_x, rays.ray.org_y, rays.ray.org_z};
    float* const directions[3] = {rays.ray.dir_x, rays.ray.dir_y, rays.ray.dir_z};
    Lanes<float> across, above, tilt_left, tilt_up, scale;
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) {
        across[lane] = spot.half_m[0] * left[lane];
        above[lane] = spot.half_m[1] * up[lane];
        tilt_left[lane] = spot.tangent[0] * left[lane];
        tilt_up[lane] = spot.tangent[1] * up[lane];
        scale[lane] = 1 / std::sqrt(1 + tilt_left[lane] * tilt_left[lane] + tilt_up[lane] * tilt_up[lane]);
    }
    for (int axis = 0; axis < 3; ++axis) {
        float* const origin = origins[axis];
        float* const direction = directions[axis];
#pragma omp simd
        for (int lane = 0; lane < kLanes; ++lane) {
            const std::int32_t i = sub_rays.at[lane];
            const float l = axes.left[axis][i], u = axes.up[axis][i];
            origin[lane] = axes.origin[axis][i] + (across[lane] * l + above[lane] * u);
            direction[lane] =
                traceable(scale[lane] * (axes.forward[axis][i] + (tilt_left[lane] * l + tilt_up[lane] * u)));
        }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
        rays.ray.tfar[lane] = far_m;
        rays.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
        rays.hit.instID[0][lane] = RTC_INVALID_GEOMETRY_ID;
    }
}

template <typename Arrays>
void write_miss(const Arrays& out, std::size_t i) {
    out.range_m[i] = std::numeric_limits<float>::infinity();
    out.intensity[i] = kUnknown;
    out.label[i] = 0;
    out.element[i] = -1;
}

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
        if (settings.receiver.mode == ReturnMode::waveform) waveform_.emplace(settings.digitiser);
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
    void trace() {
        const auto s = static_cast<std::size_t>(settings_.spot.size());
        const std::size_t n = n_pulses_ * s;
        SubRays sub_rays;
        std::size_t pulse = 0;
        std::uint32_t number = 0;
        for (std::size_t first = 0; first < n; first += kLanes) {
            const int count = static_cast<int>(std::min<std::size_t>(kLanes, n - first));
            for (int lane = 0; lane < kLanes; ++lane) {
                sub_rays.at[lane] = static_cast<std::int32_t>(pulse);
                sub_rays.pulse[lane] = axes_.pulse[pulse];
                sub_rays.number[lane] = number;
                sub_rays.valid[lane] = lane < count ? -1 : 0;
                if (lane + 1 >= count) continue;  // lanes past the end repeat the last sub-ray
                if (++number == s) ++pulse, number = 0;
            }
            if (++number == s) ++pulse, number = 0;
            trace_packet(sub_rays, count, first);
        }
    }

    void trace_packet(const SubRays& sub_rays, int count, std::size_t first) {
        Lanes<float> left, up, cosine;
        if (settings_.spot.cells.empty()) {
            for (int lane = 0; lane < kLanes; ++lane) {
                left[lane] = settings_.spot.points[2 * sub_rays.number[lane]];
                up[lane] = settings_.spot.points[2 * sub_rays.number[lane] + 1];
            }
        } else {
            draw_points(settings_.spot, sub_rays, settings_.seed, left, up);
        }
        aim(settings_.spot, axes_, sub_rays, left, up, settings_.limits.max_m, rays_);
        for (std::uint64_t& nearest : context_.nearest.at) nearest = ~std::uint64_t{0};
        if (scene_.is_random()) random_.draw(settings_.seed, sub_rays.pulse, sub_rays.number);
        intersect(sub_rays.valid, embree_, context_, rays_);
        incidence_cosines<kLanes>(scene_, rays_, cosine);
        for (int lane = 0; lane < count; ++lane) store(sub_rays, lane, cosine[lane], light_[first + lane]);
    }

    void store(const SubRays& sub_rays, int lane, float cosine, Reflection& out) {
        const std::size_t s = sub_rays.number[lane];
        const std::size_t kept = axes_.beam[sub_rays.at[lane]] * static_cast<std::size_t>(settings_.spot.size()) + s;
        const bool keep = !out_.sub_rays.range_m.empty();
        out.range_m = std::numeric_limits<float>::infinity();
        if (keep) write_miss(out_.sub_rays, kept);
        if (!is_hit(rays_, lane)) return;
        const Hit hit = hit_of(scene_, rays_, lane, cosine, random_.key_a[lane]);
        // Where in a volume a sub-ray ends is geometry, and each has its own. The noise of the electronics is one per
        // return: the mean of nine draws would be a third of it.
        const float range_m = hit.range_m + hit.spread_m * random_.normal[lane];
        if (!settings_.limits.contain(range_m)) return;  // the sensor does not look there
        const float intensity = hit.drawn_intensity(random_.second_normal[lane]);
        const bool known = !std::isnan(intensity);
        const float falloff = settings_.light.falloff_m > 0 ? settings_.light.falloff_m / range_m : 1.0f;
        const float share = settings_.spot.share[s];
        const float light = share * (known ? intensity : settings_.light.unknown_intensity) * falloff * falloff;
        out = {range_m, light, share, hit.cosine, hit.noise, hit.label, known, hit.element};
        if (!keep) return;
        out_.sub_rays.range_m[kept] = range_m;
        out_.sub_rays.intensity[kept] = intensity;
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
        const std::span<const Reflection> light(begin, end);
        if (waveform_) {
            waveform_->record(light);
            waveform_->peaks(settings_.receiver, light, echoes_);
            const SampleArrays& kept = out_.waveforms;
            const std::size_t first = axes_.beam[i] * kept.per_pulse;
            if (!kept.samples.empty()) waveform_->copy_to(kept.samples.subspan(first, kept.per_pulse), kept.first);
        } else {
            receive(settings_.receiver, light, echoes_);
        }
        write(axes_.pulse[i], axes_.beam[i]);
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
    std::vector<Reflection> light_;  // of the block's sub-rays; range inf where nothing was met
    std::optional<Waveform> waveform_;
    Echoes echoes_;
};

}  // namespace

void fire_pulses(Scene& scene, const BeamArrays& beams, const PulseSettings& settings, int threads, const Tick& tick,
                 const PulseOutput& out) {
    const RTCScene embree = scene.embree(Purpose::fire);
    for_chunks(beams, threads, tick, [&](Chunk chunk) { BlockTracer(scene, embree, beams, settings, out).run(chunk); });
}

}  // namespace hedgerow
