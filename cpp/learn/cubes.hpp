// SPDX-License-Identifier: Apache-2.0
// Marching cubes (Lorensen and Cline 1987): the triangles of a cube for each of the 256 ways its corners can lie.
//
// The table is derived, not typed in. On each face, seen from outside and walked around anticlockwise, the surface runs
// from where the walk enters the inside to where it leaves it next; an ambiguous face thus cuts its two inside
// corners off one by one, and as the neighbouring cube does the same there are no cracks. Linking the pieces gives
// closed loops, and each loop is filled by a fan. Where there is a choice, no side of a fan lies in a face of the cube:
// the neighbour could have the same side, and four triangles would meet in it. Triangles face the outside (values
// above zero).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hedgerow {

// Corner c of a cube lies at (c & 1, c >> 1 & 1, c >> 2 & 1). Edge e runs from corner `from` along `axis`.
struct CubeEdge {
    std::uint8_t from, axis;
};

class Cubes {
  public:
    using Triangle = std::array<std::uint8_t, 3>;  // edges

    // Bit c of `inside` is set if the value at corner c is below zero.
    const std::vector<Triangle>& triangles(unsigned inside) const { return triangles_[inside]; }
    const CubeEdge& edge(std::uint8_t e) const { return edges_[e]; }

    static const Cubes& table() {
        static const Cubes cubes;
        return cubes;
    }

  private:
    Cubes() {
        std::uint8_t n = 0;
        for (std::uint8_t axis = 0; axis < 3; ++axis)
            for (std::uint8_t corner = 0; corner < 8; ++corner)
                if (!(corner >> axis & 1)) {
                    edges_[n] = {corner, axis};
                    edge_of_[corner][corner | 1 << axis] = edge_of_[corner | 1 << axis][corner] = n++;
                }
        for (unsigned inside = 0; inside < 256; ++inside) triangles_[inside] = fill(inside);
    }

    std::vector<Triangle> fill(unsigned inside) const {
        // Each face anticlockwise from outside.
        constexpr std::uint8_t faces[6][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4},
                                              {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};
        constexpr std::uint8_t none = 255;
        std::array<std::uint8_t, 12> next;
        next.fill(none);
        for (const auto& face : faces)
            for (int i = 0; i < 4; ++i) {
                const auto is_inside = [&](int k) { return inside >> face[k & 3] & 1; };
                if (is_inside(i) || !is_inside(i + 1)) continue;
                int k = i + 1;
                while (is_inside(k + 1)) ++k;
                next[edge_of_[face[i]][face[(i + 1) & 3]]] = edge_of_[face[k & 3]][face[(k + 1) & 3]];
            }
        std::vector<Triangle> out;
        for (std::uint8_t start = 0; start < 12; ++start) {
            if (next[start] == none) continue;
            std::vector<std::uint8_t> loop;
            for (std::uint8_t e = start; next[e] != none;) {
                loop.push_back(e);
                const std::uint8_t following = next[e];
                next[e] = none;
                e = following;
            }
            add_fan(loop, out);
        }
        return out;
    }

    void add_fan(std::vector<std::uint8_t> loop, std::vector<Triangle>& out) const {
        const auto n = static_cast<std::ptrdiff_t>(loop.size());
        std::ptrdiff_t best = 0, fewest = n;
        for (std::ptrdiff_t start = 0; start < n; ++start) {
            std::ptrdiff_t in_faces = 0;
            for (std::ptrdiff_t i = 2; i < n - 1; ++i)
                in_faces +=
                    share_face(loop[static_cast<std::size_t>(start)], loop[static_cast<std::size_t>((start + i) % n)]);
            if (in_faces < fewest) best = start, fewest = in_faces;
        }
        std::rotate(loop.begin(), loop.begin() + best, loop.end());
        for (std::size_t i = 2; i < loop.size(); ++i) out.push_back({loop[0], loop[i - 1], loop[i]});
    }

    bool share_face(std::uint8_t a, std::uint8_t b) const {
        for (int axis = 0; axis < 3; ++axis) {
            const bool along = edges_[a].axis == axis || edges_[b].axis == axis;
            if (!along && (edges_[a].from >> axis & 1) == (edges_[b].from >> axis & 1)) return true;
        }
        return false;
    }

    std::array<CubeEdge, 12> edges_;
    std::uint8_t edge_of_[8][8] = {};
    std::array<std::vector<Triangle>, 256> triangles_;
};

}  // namespace hedgerow
