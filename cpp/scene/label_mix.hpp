// SPDX-License-Identifier: Apache-2.0
// Labels of elements that were learned from points of several classes: each return draws one, by its share.
//
// Elements with one label carry it in their own record and never come here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace hedgerow {

// How often which label was seen: element i has the entries from first[i] to first[i + 1]. All empty if no element has
// more than one.
struct LabelArrays {
    std::span<const std::int64_t> first;   // one more than elements
    std::span<const std::uint16_t> label;  // ascending within an element
    std::span<const std::int64_t> count;   // above 0

    bool mixed(std::size_t element) const { return !first.empty() && first[element + 1] - first[element] > 1; }
};

// The number in (0, 1) that decides about the label of a return, from the first Philox word of its ray.
//
// It is independent of the coin of any element: a coin is made of mix(key_a + ...) ^ (key_b + ...), which, key_b being
// uniform and independent of key_a, is uniform whatever key_a is, and key_b is not used here. It is independent of
// range and intensity, which come from the other two Philox words. Only several coins of one ray together tell
// something of key_a; there the mixing of bits has to do, as it has to between coins.
inline float label_number(std::uint32_t key_a, std::uint64_t element) {
    const std::uint32_t low = static_cast<std::uint32_t>(element);
    const std::uint32_t high = static_cast<std::uint32_t>(element >> 32);
    return open_unit(mix(mix(key_a ^ 0x6A09E667u) ^ mix(low ^ high * 0xC2B2AE35u)));
}

// The side table of a geometry some of whose elements have several labels.
class LabelMix {
  public:
    explicit LabelMix(const LabelArrays& arrays) {
        if (arrays.first.empty()) return;
        first_.reserve(arrays.first.size());
        for (std::size_t element = 0; element + 1 < arrays.first.size(); ++element) {
            first_.push_back(static_cast<std::uint32_t>(shares_.size()));
            if (arrays.mixed(element)) add(arrays, arrays.first[element], arrays.first[element + 1]);
        }
        first_.push_back(static_cast<std::uint32_t>(shares_.size()));
    }

    // The label of an element that is mixed.
    std::uint16_t draw(std::uint32_t element, float number) const {
        const auto begin = shares_.begin() + first_[element], last = shares_.begin() + first_[element + 1] - 1;
        return std::find_if(begin, last, [&](const Share& share) { return number < share.until; })->label;
    }

  private:
    struct Share {
        float until;  // sum of the shares up to this label; that of the last one is not looked at
        std::uint16_t label;
    };

    void add(const LabelArrays& arrays, std::int64_t begin, std::int64_t end) {
        double total = 0, sum = 0;
        for (std::int64_t i = begin; i < end; ++i) total += static_cast<double>(arrays.count[i]);
        for (std::int64_t i = begin; i < end; ++i) {
            sum += static_cast<double>(arrays.count[i]);
            shares_.push_back({static_cast<float>(sum / total), arrays.label[i]});
        }
    }

    std::vector<std::uint32_t> first_;
    std::vector<Share> shares_;
};

}  // namespace hedgerow
