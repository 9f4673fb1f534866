// SPDX-License-Identifier: Apache-2.0
#include "trace/place_pattern.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "base/wrapping.hpp"

namespace hedgerow {
namespace {

struct Vector {
    double x, y, z;
};

struct Quaternion {
    double x, y, z, w;
};

Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Vector cross(Vector a, Vector b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }

Quaternion operator*(Quaternion a, Quaternion b) {
    return {a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z};
}

Vector rotate(Quaternion q, Vector v) {
    const Vector u{q.x, q.y, q.z};
    const Vector c = cross(u, v);
    const Vector t{2 * c.x, 2 * c.y, 2 * c.z};
    const Vector d = cross(u, t);
    return {v.x + q.w * t.x + d.x, v.y + q.w * t.y + d.y, v.z + q.w * t.z + d.z};
}

struct Pose {
    Vector position;
    Quaternion rotation;
};

// The stretch between two knots, with what SLERP needs worked out once.
class Stretch {
  public:
    Stretch(const TrajectoryArrays& trajectory, std::size_t i) : begin_ns(trajectory.time_ns[i]) {
        const std::size_t j = std::min(i + 1, trajectory.time_ns.size() - 1);
        end_ns = trajectory.time_ns[j];
        const double* p = &trajectory.position_m[3 * i];
        const double* n = &trajectory.position_m[3 * j];
        from_ = {p[0], p[1], p[2]};
        step_ = {n[0] - p[0], n[1] - p[1], n[2] - p[2]};
        const double* a = &trajectory.quaternion_xyzw[4 * i];
        const double* b = &trajectory.quaternion_xyzw[4 * j];
        const double dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
        const double sign = dot < 0 ? -1 : 1;  // the shorter way round
        a_ = {a[0], a[1], a[2], a[3]};
        b_ = {sign * b[0], sign * b[1], sign * b[2], sign * b[3]};
        angle_ = std::acos(std::min(1.0, std::abs(dot)));
    }

    Pose at(std::int64_t time_ns) const {
        const double f = end_ns > begin_ns ? static_cast<double>(difference(time_ns, begin_ns)) /
                                                 static_cast<double>(difference(end_ns, begin_ns))
                                           : 0.0;
        // Below a ten-thousandth of a radian the chord and the arc agree to 1e-9.
        const bool straight = angle_ < 1e-4;
        const double inverse = straight ? 1 : 1 / std::sin(angle_);
        const double wa = straight ? 1 - f : std::sin((1 - f) * angle_) * inverse;
        const double wb = straight ? f : std::sin(f * angle_) * inverse;
        Quaternion q{wa * a_.x + wb * b_.x, wa * a_.y + wb * b_.y, wa * a_.z + wb * b_.z, wa * a_.w + wb * b_.w};
        const double scale = 1 / std::sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
        return {{from_.x + f * step_.x, from_.y + f * step_.y, from_.z + f * step_.z},
                {q.x * scale, q.y * scale, q.z * scale, q.w * scale}};
    }

    std::int64_t begin_ns, end_ns;

  private:
    Vector from_, step_;
    Quaternion a_, b_;
    double angle_;
};

std::size_t stretch_at(const TrajectoryArrays& trajectory, std::int64_t time_ns) {
    const auto after = std::ranges::upper_bound(trajectory.time_ns, time_ns);
    const std::ptrdiff_t index = after - trajectory.time_ns.begin() - 1;
    const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(trajectory.time_ns.size()) - 2;
    return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(index, 0, std::max<std::ptrdiff_t>(last, 0)));
}

}  // namespace

void place_pattern(const PatternArrays& pattern, const TrajectoryArrays& trajectory, const Mount& mount,
                   const Repeats& repeats, int threads, std::span<double> origin_m, std::span<float> direction,
                   std::span<std::int64_t> time_ns) {
    constexpr std::size_t kBlock = 4096;
    const std::size_t n = time_ns.size();
    const Vector arm{mount.position_m[0], mount.position_m[1], mount.position_m[2]};
    const Quaternion turn{mount.quaternion_xyzw[0], mount.quaternion_xyzw[1], mount.quaternion_xyzw[2],
                          mount.quaternion_xyzw[3]};
    const auto place_block = [&](std::size_t block) {
        const std::size_t begin = block * kBlock, end = std::min(begin + kBlock, n);
        Stretch stretch(trajectory, 0);
        std::int64_t posed_ns = 0;
        Pose sensor{};
        bool posed = false;
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t k = i / pattern.size(), pulse = i - k * pattern.size();
            const double turns = static_cast<double>(repeats.first + static_cast<std::int64_t>(k));
            std::int64_t t = repeats.start_ns;
            add_to(t, std::llround(turns * repeats.period_ns));
            add_to(t, pattern.time_ns[pulse]);
            if (!posed || t != posed_ns) {  // lasers that fire together share a pose
                if (!posed || t < stretch.begin_ns || t >= stretch.end_ns)
                    stretch = Stretch(trajectory, stretch_at(trajectory, t));
                const Pose vehicle = stretch.at(t);
                sensor = {vehicle.position + rotate(vehicle.rotation, arm), vehicle.rotation * turn};
                posed_ns = t;
                posed = true;
            }
            const float* d = &pattern.direction[3 * pulse];
            const float* o = &pattern.origin_m[3 * pulse];
            const Vector way = rotate(sensor.rotation, {d[0], d[1], d[2]});
            const Vector start = sensor.position + rotate(sensor.rotation, {o[0], o[1], o[2]});
            time_ns[i] = t;
            direction[3 * i] = static_cast<float>(way.x);
            direction[3 * i + 1] = static_cast<float>(way.y);
            direction[3 * i + 2] = static_cast<float>(way.z);
            origin_m[3 * i] = start.x;
            origin_m[3 * i + 1] = start.y;
            origin_m[3 * i + 2] = start.z;
        }
    };
    on_threads(threads, [&] { tbb::parallel_for(std::size_t{0}, (n + kBlock - 1) / kBlock, place_block); });
}

}  // namespace hedgerow
