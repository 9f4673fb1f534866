# SPDX-License-Identifier: Apache-2.0
"""Unit quaternions, in arrays: the rotation arithmetic that poses and trajectories need.

Order (x, y, z, w), right-handed, active: `rotate(q, v)` turns v. Formulas: Shepperd, "Quaternion from rotation
matrix", 1978 (conversion without cancellation); Shoemake, "Animating rotation with quaternion curves", 1985 (SLERP).
"""

import numpy as np

from hedgerow.base.arrays import Array


def multiply(left: Array, right: Array) -> Array:
    """Return the product of (..., 4) quaternions: turn by `right` first, then by `left`."""
    (ax, ay, az, aw), (bx, by, bz, bw) = np.moveaxis(left, -1, 0), np.moveaxis(right, -1, 0)
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def conjugate(quaternion: Array) -> Array:
    """Return the inverse of (..., 4) unit quaternions."""
    return quaternion * np.array([-1.0, -1.0, -1.0, 1.0])


def rotate(quaternion: Array, vectors: Array) -> Array:
    """Turn (..., 3) vectors by (..., 4) unit quaternions."""
    axis, w = quaternion[..., :3], quaternion[..., 3:]
    twice = 2 * np.cross(axis, vectors)
    return vectors + w * twice + np.cross(axis, twice)


def normalise(quaternion: Array) -> Array:
    """Return (..., 4) quaternions scaled to unit length."""
    return quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)


def to_matrix(quaternion: Array) -> Array:
    """Return the (..., 3, 3) rotation matrices of (..., 4) unit quaternions."""
    x, y, z, w = np.moveaxis(quaternion, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(matrix: Array) -> Array:
    """Return the (..., 4) unit quaternions, w >= 0, of (..., 3, 3) rotation matrices."""
    m = matrix
    trace = np.trace(m, axis1=-2, axis2=-1)
    # Shepperd: of the four products q_k * (x, y, z, w), take the one whose factor q_k is largest.
    outer = np.stack(
        [
            *[1 + 2 * m[..., k, k] - trace for k in range(3)],
            1 + trace,
            m[..., 1, 0] + m[..., 0, 1],
            m[..., 2, 0] + m[..., 0, 2],
            m[..., 2, 1] + m[..., 1, 2],
            m[..., 2, 1] - m[..., 1, 2],
            m[..., 0, 2] - m[..., 2, 0],
            m[..., 1, 0] - m[..., 0, 1],
        ],
        axis=-1,
    )
    xx, yy, zz, ww, xy, xz, yz, xw, yw, zw = range(10)
    products = outer[..., [[xx, xy, xz, xw], [xy, yy, yz, yw], [xz, yz, zz, zw], [xw, yw, zw, ww]]]
    largest = np.argmax(outer[..., :4], axis=-1)
    chosen = np.take_along_axis(products, largest[..., None, None], axis=-2)[..., 0, :]
    quaternion = normalise(chosen)
    return np.where(quaternion[..., 3:] < 0, -quaternion, quaternion)


def from_rpy(roll_rad: float, pitch_rad: float, yaw_rad: float) -> Array:
    """Return the (4,) quaternion that turns by roll about x, then pitch about y, then yaw about z, fixed axes."""
    halves = np.array([roll_rad, pitch_rad, yaw_rad]) / 2
    turns = [np.append(np.sin(half) * axis, np.cos(half)) for half, axis in zip(halves, np.eye(3), strict=True)]
    return multiply(turns[2], multiply(turns[1], turns[0]))


def shortest_turn(start: Array, end: Array) -> tuple[Array, Array]:
    """Find the shortest turn from (N, 4) unit quaternions to others; q and -q are the same rotation.

    Returns:
        (N, 4) `end`, its sign changed where that is nearer to `start`, and (N,) the angle between them as
        four-vectors, from 0 to pi / 2 (half the angle of the turn) [rad].
    """
    dot = np.einsum("ij,ij->i", start, end)
    near = np.where(dot[:, None] < 0, -end, end)
    # The angle from both chords: arccos(dot) has lost half its digits when the two are nearly parallel.
    angle_rad = 2 * np.arctan2(np.linalg.norm(near - start, axis=1), np.linalg.norm(near + start, axis=1))
    return near, angle_rad


def slerp(start: Array, near: Array, angle_rad: Array, fraction: Array) -> Array:
    """Turn from `start` to `near` at constant rate.

    Args:
        start: (N, 4) unit quaternions.
        near: (N, 4) unit quaternions, from `shortest_turn`.
        angle_rad: (N,) angle between them, from `shortest_turn`.
        fraction: (N,) 0 is `start`, 1 is `near`.

    Returns:
        (N, 4) unit quaternions.
    """
    sine = np.sin(angle_rad)
    # Below 1e-6 rad the straight chord differs from the arc by its cube, 1e-18: exact, and 0 / 0 is avoided.
    parallel = sine < 1e-6
    sine[parallel] = 1
    from_start = np.where(parallel, 1 - fraction, np.sin((1 - fraction) * angle_rad) / sine)
    from_near = np.where(parallel, fraction, np.sin(fraction * angle_rad) / sine)
    return normalise(from_start[:, None] * start + from_near[:, None] * near)
