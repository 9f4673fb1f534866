// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of a symmetric 3x3 matrix in closed form (Smith 1961), and the axis of the smallest.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hedgerow {

struct Symmetric {
    double xx, xy, xz, yy, yz, zz;
};

struct Spectrum {
    double value[3];  // ascending
    double mean, spread;
};

inline Spectrum spectrum(const Symmetric& m) {
    const double q = (m.xx + m.yy + m.zz) / 3;
    const double a = m.xx - q, b = m.yy - q, c = m.zz - q;
    const double off = m.xy * m.xy + m.xz * m.xz + m.yz * m.yz;
    const double p = std::sqrt((a * a + b * b + c * c + 2 * off) / 6);
    if (!(p > 0)) return {{q, q, q}, q, 0};
    const double det = a * (b * c - m.yz * m.yz) - m.xy * (m.xy * c - m.yz * m.xz) + m.xz * (m.xy * m.yz - b * m.xz);
    const double angle = std::acos(std::clamp(det / (2 * p * p * p), -1.0, 1.0)) / 3;
    const double largest = q + 2 * p * std::cos(angle);
    const double smallest = q + 2 * p * std::cos(angle + 2 * std::numbers::pi / 3);
    return {{smallest, 3 * q - largest - smallest, largest}, q, p};
}

inline double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

inline void cross(const double a[3], const double b[3], double out[3]) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

inline bool normalise(double v[3]) {
    const double length = std::sqrt(dot(v, v));
    if (!(length > 0)) return false;
    for (int axis = 0; axis < 3; ++axis) v[axis] /= length;
    return true;
}

// Unit axis of the smallest eigenvalue, on the side of `toward`. Where points lie on a line or in one place there is
// no plane: then it is the direction to `toward`, square to the line.
inline void flattest_axis(const Symmetric& m, const Spectrum& s, const double toward[3], double axis[3]) {
    constexpr double kLine = 1e-3;  // a stripe 3 % as wide as it is long counts as a line
    const double rows[3][3] = {
        {m.xx - s.value[0], m.xy, m.xz}, {m.xy, m.yy - s.value[0], m.yz}, {m.xz, m.yz, m.zz - s.value[0]}};
    double best = -1;
    for (int i = 0; i < 3; ++i) {
        double candidate[3];
        cross(rows[i], rows[(i + 1) % 3], candidate);
        const double size = dot(candidate, candidate);
        if (size > best) best = size, std::copy_n(candidate, 3, axis);
    }
    const bool plane = s.value[1] - s.value[0] > kLine * (s.value[2] - s.value[0]) && normalise(axis);
    if (!plane) {
        const double* longest = rows[0];
        for (const auto& row : rows)
            if (dot(row, row) > dot(longest, longest)) longest = row;
        double line[3] = {longest[0], longest[1], longest[2]};
        const bool is_line = s.value[2] > 0 && normalise(line);
        const double along = is_line ? dot(toward, line) : 0;
        for (int i = 0; i < 3; ++i) axis[i] = toward[i] - along * (is_line ? line[i] : 0);
        if (!normalise(axis)) std::copy_n(toward, 3, axis);
        if (!normalise(axis)) axis[0] = 0, axis[1] = 0, axis[2] = 1;
    }
    if (dot(axis, toward) < 0)
        for (int i = 0; i < 3; ++i) axis[i] = -axis[i];
}

}  // namespace hedgerow
