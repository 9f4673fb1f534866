// SPDX-License-Identifier: Apache-2.0
// What all bindings share: arrays in and out without copies, settings and answers by name, errors that name the
// argument, progress and Ctrl-C. Only files in this folder know Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trace/batch.hpp"
#include "trace/fire.hpp"

namespace hedgerow {

namespace nb = nanobind;

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
template <typename T>
using Column = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <typename T>
using Rows3 = nb::ndarray<nb::numpy, T, nb::shape<-1, 3>>;
template <typename T>
using Table = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <typename T>
constexpr const char* type_name() {
    if constexpr (std::is_same_v<T, float>) return "float32";
    if constexpr (std::is_same_v<T, double>) return "float64";
    if constexpr (std::is_same_v<T, std::int64_t>) return "int64";
    if constexpr (std::is_same_v<T, std::int32_t>) return "int32";
    if constexpr (std::is_same_v<T, std::uint32_t>) return "uint32";
    if constexpr (std::is_same_v<T, std::uint16_t>) return "uint16";
    if constexpr (std::is_same_v<T, std::uint8_t>) return "uint8";
}

// The array's values, if it is contiguous, of type T and of shape (n,) or (n, columns); n = -1 takes any length.
template <typename T>
std::span<const T> values(const AnyArray& array, const char* name, std::ptrdiff_t n, std::size_t columns = 1) {
    const auto refuse = [&](const std::string& what) {
        throw nb::type_error((std::string(name) + ": " + what).c_str());
    };
    if (array.dtype() != nb::dtype<T>()) refuse(std::string("must be of type ") + type_name<T>());
    const bool flat = columns == 1;
    const bool shaped = array.ndim() == (flat ? 1u : 2u) && (flat || array.shape(1) == columns) &&
                        (n < 0 || array.shape(0) == static_cast<std::size_t>(n));
    if (!shaped) {
        std::string shape = "(";
        for (std::size_t i = 0; i < array.ndim(); ++i) shape += (i ? ", " : "") + std::to_string(array.shape(i));
        const std::string rows = n < 0 ? "N" : std::to_string(n);
        refuse("must have shape (" + rows + (flat ? ",)" : ", " + std::to_string(columns) + ")") + ", not " + shape +
               (array.ndim() == 1 ? ",)" : ")"));
    }
    std::size_t stride = 1;
    for (std::size_t i = array.ndim(); i-- > 0; stride *= array.shape(i))
        if (array.size() > 0 && array.shape(i) > 1 && array.stride(i) != static_cast<std::int64_t>(stride))
            refuse("must be C-contiguous");
    if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) != 0) refuse("must be aligned");
    return {static_cast<const T*>(array.data()), array.size()};
}

// Embree aborts on rays with NaN, infinity or more than about 1e18, and floats overflow when such numbers are
// multiplied.
constexpr double kFarthest_m = 1e12;

// Refuses numbers beyond `most`, infinities and NaN.
template <typename T>
void require_within(std::span<const T> numbers, const char* name, double most) {
    bool within = true;
    for (const T number : numbers) within &= std::abs(number) <= static_cast<T>(most);  // no branch: eight at a time
    if (!within) throw nb::value_error((std::string(name) + ": must be finite and not so large").c_str());
}

// Refuses NaN alone.
template <typename T>
void require_numbers(std::span<const T> numbers, const char* name) {
    bool known = true;
    for (const T number : numbers) known &= number == number;
    if (!known) throw nb::value_error((std::string(name) + ": must not be NaN").c_str());
}

inline void require_number(float number, const char* name) {
    require_numbers(std::span<const float>(&number, 1), name);
}

inline void require_limits(const RangeLimits& limits) {
    require_number(limits.min_m, "min_m");
    require_number(limits.max_m, "max_m");
}

// A fresh numpy array (a Column, Rows3 or Table) and its values. numpy allocates it: large ones get huge pages, which
// spares page faults.
template <typename Array>
struct Fresh {
    using T = typename Array::Scalar;
    explicit Fresh(std::size_t n) : Fresh(empty(nb::int_(n))) {}
    Fresh(std::size_t n, std::size_t columns) : Fresh(empty(nb::make_tuple(n, columns))) {}
    explicit Fresh(const std::vector<T>& from) : Fresh(from.size()) { std::ranges::copy(from, values.begin()); }
    Array get() const { return nb::cast<Array>(array); }

    nb::object array;
    std::span<T> values;

  private:
    explicit Fresh(nb::object made) : array(made) {
        const Array view = get();
        values = {view.data(), view.size()};
    }
    static nb::object empty(nb::object shape) {
        return nb::module_::import_("numpy").attr("empty")(shape, type_name<T>());
    }
};

template <typename Struct, typename T>
struct Field {
    const char* name;
    T Struct::* member;
};

template <typename Struct, typename T>
Field<Struct, T> field(const char* name, T Struct::* member) {
    return {name, member};
}

// An argument of type T; numbers are not taken for enums.
template <typename T>
auto argument(const char* name) {
    if constexpr (std::is_enum_v<T>)
        return nb::arg(name).noconvert();
    else
        return nb::arg(name);
}

// Binds a struct of settings: Python gives every field by its name.
template <typename Struct, typename... Ts>
nb::class_<Struct> bind_settings(nb::module_& m, const char* name, const char* doc, Field<Struct, Ts>... fields) {
    nb::class_<Struct> bound(m, name, doc);
    bound.def(
        "__init__",
        [fields...](Struct* self, Ts... given) {
            new (self) Struct{};
            ((self->*(fields.member) = std::move(given)), ...);
        },
        nb::kw_only(), argument<Ts>(fields.name)...);
    (bound.def_ro(fields.name, fields.member), ...);
    return bound;
}

// Binds a struct of fresh arrays, which Python reads by name.
template <typename Struct, typename... Arrays>
nb::class_<Struct> bind_answer(nb::module_& m, const char* name, const char* doc,
                               Field<Struct, Fresh<Arrays>>... fields) {
    nb::class_<Struct> bound(m, name, doc);
    (bound.def_prop_ro(
         fields.name, [member = fields.member](const Struct& answer) { return (answer.*member).get(); },
         nb::rv_policy::reference),
     ...);
    return bound;
}

// The beams of a call, and the arrays that they are read from.
struct HeldBeams : BeamArrays {
    std::array<AnyArray, 5> held;
};

// Between batches: lets Ctrl-C through and reports how many beams are done.
inline Tick ticker(const nb::object& progress) {
    return [&progress](std::size_t done) {
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done);
    };
}

// One function per topic adds its part to the module.
nb::class_<Scene> bind_scene(nb::module_& m);
void bind_trace(nb::module_& m, nb::class_<Scene>& scene);
void bind_points(nb::module_& m);
void bind_pattern(nb::module_& m);
void bind_pulses(nb::module_& m);
void bind_cluster(nb::module_& m);
void bind_refined(nb::module_& m);
void bind_surface(nb::module_& m);

}  // namespace hedgerow
