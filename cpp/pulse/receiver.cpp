// SPDX-License-Identifier: Apache-2.0
#include "pulse/receiver.hpp"

#include <algorithm>
#include <limits>

namespace hedgerow {
namespace {

// Keeps the mean range defined where no light comes back at all, and is far too little to move it elsewhere.
constexpr double kDim = 1e-6;

// Of windows that differ by less than rounding the nearest is the strongest.
constexpr double kMore = 1 + 1e-6;

struct Window {
    int begin = 0, end = 0;
    bool found() const { return end > begin; }
};

// The reflections of a pulse and the sums of their light.
class Signal {
  public:
    Signal(const Receiver& receiver, std::span<const Reflection> light) : receiver_(receiver), light_(light) {
        sum_[0] = 0;
        for (int i = 0; i < size(); ++i) sum_[i + 1] = sum_[i] + static_cast<double>(light[i].light);
    }

    // The first window from reflection `begin` on that is bright enough.
    Window first(int begin) const {
        for (Window window{begin, begin}; window.begin < size(); ++window.begin) {
            grow(window);
            if (seen(window)) return window;
        }
        return {};
    }

    Window last() const {
        for (Window window{size(), size()}; window.end > 0; --window.end) {
            while (window.begin > 0 && together(window.begin - 1, window.end - 1)) --window.begin;
            if (seen(window)) return window;
        }
        return {};
    }

    Window strongest() const {
        const Window best = strongest_among({0, size()});
        return seen(best) ? best : Window{};
    }

    // The strongest of the light that is in no other window.
    Window second(Window strongest) const {
        const Window nearer = strongest_among({0, strongest.begin});
        const Window farther = strongest_among({strongest.end, size()});
        const Window best = sum(farther) > kMore * sum(nearer) || !nearer.found() ? farther : nearer;
        return seen(best) ? best : Window{};
    }

    Echo echo(Window window, std::uint32_t draw) const {
        Echo out = echo_of(light_.subspan(window.begin, window.end - window.begin));
        out.draw = draw;
        return out;
    }

  private:
    int size() const { return static_cast<int>(light_.size()); }
    bool together(int near, int far) const { return light_[far].range_m <= light_[near].range_m + receiver_.cutoff_m; }
    void grow(Window& window) const { grow(window, size()); }
    void grow(Window& window, int end) const {
        while (window.end < end && together(window.begin, window.end)) ++window.end;
    }
    Window strongest_among(Window all) const {
        Window best;
        for (Window window{all.begin, all.begin}; window.begin < all.end; ++window.begin) {
            grow(window, all.end);
            if (!best.found() || sum(window) > kMore * sum(best)) best = window;
        }
        return best;
    }
    double sum(Window window) const { return sum_[window.end] - sum_[window.begin]; }
    // Rounding must not decide about a threshold that is met exactly.
    bool seen(Window window) const { return window.found() && sum(window) * kMore >= receiver_.threshold; }

    const Receiver& receiver_;
    std::span<const Reflection> light_;
    std::array<double, kMaxSubRays + 1> sum_;
};

void add_all(const Receiver& receiver, const Signal& signal, Echoes& out) {
    for (int begin = 0; out.count < receiver.max_returns;) {
        const Window window = signal.first(begin);
        if (!window.found()) return;
        out.add(signal.echo(window, static_cast<std::uint32_t>(out.count)));
        begin = window.end;
    }
}

// The rays of a pulse, nearest first, as the text of Goodin 2018 §3.2.3 has them.
class SingleRays {
  public:
    SingleRays(const Receiver& receiver, std::span<const Reflection> light) : cutoff_m_(receiver.cutoff_m) {
        for (const Reflection& each : light)
            if (each.intensity() * kMore >= receiver.threshold) rays_[count_++] = &each;
    }

    bool empty() const { return count_ == 0; }

    // The most intense, the nearest of equals.
    const Reflection& strongest() const { return strongest_from(0, count_); }

    // The farthest, the most intense of equals.
    const Reflection& last() const {
        int begin = count_ - 1;
        while (begin > 0 && rays_[begin - 1]->range_m == rays_[begin]->range_m) --begin;
        return strongest_from(begin, count_);
    }

    // The plain average of those within the cutoff of the nearest; the most intense of them gives the rest.
    Echo first() const {
        const float nearest_m = rays_[0]->range_m;
        double beyond_m = 0, intensity = 0;
        int n = 0;
        for (; n < count_ && rays_[n]->range_m <= nearest_m + cutoff_m_; ++n) {
            beyond_m += static_cast<double>(rays_[n]->range_m) - nearest_m;
            intensity += rays_[n]->intensity();
        }
        return echo_at(static_cast<float>(nearest_m + beyond_m / n), static_cast<float>(intensity / n),
                       strongest_from(0, n), 0);
    }

    static Echo echo(const Reflection& ray, std::uint32_t draw) {
        return echo_at(ray.range_m, ray.intensity(), ray, draw);
    }

  private:
    const Reflection& strongest_from(int begin, int end) const {
        return **std::max_element(
            rays_.begin() + begin, rays_.begin() + end,
            [](const Reflection* a, const Reflection* b) { return a->intensity() < b->intensity(); });
    }

    static Echo echo_at(float range_m, float intensity, const Reflection& brightest, std::uint32_t draw) {
        Echo out{};
        out.range_m = range_m;
        out.intensity = intensity;
        out.width_m = std::numeric_limits<float>::quiet_NaN();
        out.draw = draw;
        out.take(brightest);
        return out;
    }

    float cutoff_m_;
    int count_ = 0;
    std::array<const Reflection*, kMaxSubRays> rays_;
};

void receive_rays(const Receiver& receiver, const SingleRays& rays, Echoes& out) {
    if (rays.empty()) return;
    switch (receiver.mode) {
        case ReturnMode::first:
            return out.add(rays.first());
        case ReturnMode::strongest:
            return out.add(SingleRays::echo(rays.strongest(), 0));
        case ReturnMode::last:
            return out.add(SingleRays::echo(rays.last(), 1));
        default:
            out.add(SingleRays::echo(rays.strongest(), 0));
            if (&rays.last() != &rays.strongest()) out.add(SingleRays::echo(rays.last(), 1));
    }
}

}  // namespace

Echo echo_of(std::span<const Reflection> light) {
    const Reflection* strongest = &light[0];
    double sum = 0, weights = 0, moments = 0;
    for (const Reflection& each : light) {
        if (each.light > strongest->light) strongest = &each;
        const double weight = each.light + kDim * each.share;
        sum += each.light;
        weights += weight;
        moments += weight * (static_cast<double>(each.range_m) - light[0].range_m);
    }
    Echo echo{};
    echo.range_m = static_cast<float>(light[0].range_m + moments / weights);
    echo.intensity = static_cast<float>(sum);
    echo.width_m = std::numeric_limits<float>::quiet_NaN();
    echo.take(*strongest);
    return echo;
}

void receive(const Receiver& receiver, std::span<const Reflection> light, Echoes& out) {
    out.count = 0;
    if (light.empty()) return;
    if (receiver.processing == Processing::paper) return receive_rays(receiver, SingleRays(receiver, light), out);
    const Signal signal(receiver, light);
    // The last and the second return have random numbers of their own, so that they are the same without the strongest.
    const auto add = [&](Window window, std::uint32_t draw) {
        if (window.found()) out.add(signal.echo(window, draw));
    };
    const ReturnMode mode = receiver.mode;
    if (mode == ReturnMode::all) return add_all(receiver, signal, out);
    if (mode == ReturnMode::first) return add(signal.first(0), 0);
    if (mode == ReturnMode::last) return add(signal.last(), 1);
    const Window strongest = signal.strongest();
    if (mode == ReturnMode::second) {
        const Window second = strongest.found() ? signal.second(strongest) : Window{};
        return second.found() ? add(second, 2) : add(strongest, 0);
    }
    add(strongest, 0);
    if (mode == ReturnMode::strongest) return;
    if (mode != ReturnMode::strongest_and_second) {
        const Window last = signal.last();
        const bool same = strongest.found() && strongest.begin == last.begin && strongest.end == last.end;
        if (!same) return add(last, 1);
        if (mode == ReturnMode::strongest_and_last) return;
    }
    if (strongest.found()) add(signal.second(strongest), 2);
}

}  // namespace hedgerow
