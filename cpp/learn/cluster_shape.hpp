// SPDX-License-Identifier: Apache-2.0
// The shape of a cluster: its longest axis, where K-means may start, and whether its points look like those of a
// Gaussian, so that there is nothing to split (Deschaud 2012 §III.C.2).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "learn/kmeans.hpp"

namespace hedgerow {

using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<Vector3, 3>;

struct ClusterShape {
    Vector3 mean{};
    Matrix3 covariance{};
};

inline Vector3 point_of(const Cloud& cloud, std::size_t i, const Vector3& from = {}) {
    return {cloud.x[i] - from[0], cloud.y[i] - from[1], cloud.z[i] - from[2]};
}

inline ClusterShape shape_of(const Cloud& cloud, const Node& node) {
    const double n = static_cast<double>(node.size());
    ClusterShape shape;
    for (std::size_t i = node.begin; i < node.end; ++i) {
        const Vector3 p = point_of(cloud, i);
        for (int a = 0; a < 3; ++a) shape.mean[a] += p[a] / n;
    }
    for (std::size_t i = node.begin; i < node.end; ++i) {
        const Vector3 p = point_of(cloud, i, shape.mean);
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b) shape.covariance[a][b] += p[a] * p[b] / n;
    }
    return shape;
}

// The longest axis of a covariance, as long as the standard deviation along it; 0 if all points are in one place.
inline Vector3 longest_axis(const Matrix3& covariance) {
    Matrix3 power = covariance;
    for (int round = 0; round < 24; ++round) {  // squares: the longest axis is all that is left
        const double trace = power[0][0] + power[1][1] + power[2][2];
        if (!(trace > 0)) return {};
        Matrix3 squared{};
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b)
                for (int c = 0; c < 3; ++c) squared[a][b] += power[a][c] / trace * (power[c][b] / trace);
        power = squared;
    }
    const int column = power[0][0] >= power[1][1] && power[0][0] >= power[2][2] ? 0
                       : power[1][1] >= power[2][2]                             ? 1
                                                                                : 2;
    Vector3 axis = power[column];
    const double length = std::hypot(axis[0], axis[1], axis[2]);
    double variance = 0;
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) variance += axis[a] / length * covariance[a][b] * (axis[b] / length);
    for (double& part : axis) part *= std::sqrt(std::max(variance, 0.0)) / length;
    return axis;
}

// Mardia's tests (1970): in whitened coordinates, the squared third moments and the mean fourth power of the distance
// are those of a Gaussian, within the limits. Limits of 0 let nothing pass.
inline bool looks_gaussian(const Cloud& cloud, const Node& node, const GaussianLimits& limits) {
    if (!(limits.skewness > 0)) return false;
    const ClusterShape shape = shape_of(cloud, node);
    Matrix3 lower{};  // Cholesky
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b <= a; ++b) {
            double left = shape.covariance[a][b];
            for (int c = 0; c < b; ++c) left -= lower[a][c] * lower[b][c];
            if (a == b && !(left > 1e-12)) return false;  // flatter than a micrometre: no test of a volume
            lower[a][b] = a == b ? std::sqrt(left) : left / lower[b][b];
        }
    std::array<std::array<Vector3, 3>, 3> third{};
    double fourth = 0;
    for (std::size_t i = node.begin; i < node.end; ++i) {
        Vector3 y = point_of(cloud, i, shape.mean);
        for (int a = 0; a < 3; ++a) {
            for (int c = 0; c < a; ++c) y[a] -= lower[a][c] * y[c];
            y[a] /= lower[a][a];
        }
        const double squared = y[0] * y[0] + y[1] * y[1] + y[2] * y[2];
        fourth += squared * squared;
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b)
                for (int c = 0; c < 3; ++c) third[a][b][c] += y[a] * y[b] * y[c];
    }
    const double n = static_cast<double>(node.size());
    double skewness = 0;
    for (const auto& plane : third)
        for (const Vector3& row : plane)
            for (const double sum : row) skewness += sum / n * (sum / n);
    const double kurtosis = (fourth / n - 15) / std::sqrt(120 / n);
    return n * skewness / 6 <= limits.skewness && std::abs(kurtosis) <= limits.kurtosis;
}

}  // namespace hedgerow
