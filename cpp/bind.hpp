// SPDX-License-Identifier: Apache-2.0
// What all bindings share: arrays in and out without copies, errors that name the argument, progress and Ctrl-C.
// Only files named bind* know Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "batch.hpp"

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
    return {static_cast<const T*>(array.data()), array.size()};
}

// A fresh numpy array and its values. numpy allocates it: large ones get huge pages, which spares page faults.
template <typename T>
struct Fresh {
    explicit Fresh(std::size_t n)
        : array(empty(nb::int_(n))), values(Column<T>(nb::cast<Column<T>>(array)).data(), n) {}
    Fresh(std::size_t n, std::size_t columns)
        : array(empty(nb::make_tuple(n, columns))),
          values(nb::cast<nb::ndarray<T, nb::ndim<2>>>(array).data(), n * columns) {}
    Column<T> column() const { return nb::cast<Column<T>>(array); }
    Rows3<T> rows3() const { return nb::cast<Rows3<T>>(array); }
    Table<T> table() const { return nb::cast<Table<T>>(array); }

    nb::object array;
    std::span<T> values;

  private:
    static nb::object empty(nb::object shape) {
        return nb::module_::import_("numpy").attr("empty")(shape, type_name<T>());
    }
};

// The beams of a call, as the kernels want them.
inline BeamArrays beam_arrays(const AnyArray& origin_m, const AnyArray& direction, const AnyArray& pulse,
                              const AnyArray& ring, const AnyArray& sweep,
                              const std::array<double, 3>& scene_origin_m) {
    const auto pulses = values<std::int64_t>(pulse, "pulse", -1);
    const auto n = static_cast<std::ptrdiff_t>(pulses.size());
    return {values<double>(origin_m, "origin_m", n, 3),
            values<float>(direction, "direction", n, 3),
            pulses,
            values<std::uint16_t>(ring, "ring", n),
            values<std::int32_t>(sweep, "sweep", n),
            {scene_origin_m[0], scene_origin_m[1], scene_origin_m[2]}};
}

// Range noise as Python gives it: sigma0_m, sigma_a_m, min_cosine, sigma_per_m.
inline NoiseGroup noise_of(const std::array<float, 4>& given) {
    return {given[0] * given[0], given[1] * given[1], given[2], given[3] * given[3]};
}

// Between batches: lets Ctrl-C through and reports how many beams are done.
inline Tick ticker(const nb::object& progress) {
    return [&progress](std::size_t done) {
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done);
    };
}

// One function per topic adds its part to the module.
void bind_beam(nb::module_& m);
void bind_behind(nb::module_& m);
void bind_cluster(nb::module_& m);
void bind_points(nb::module_& m);
void bind_refine(nb::module_& m);
void bind_surface(nb::module_& m);

}  // namespace hedgerow
