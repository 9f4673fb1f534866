// SPDX-License-Identifier: Apache-2.0
// The few differences between Embree 3 and 4, and the device with its error callback.
#pragma once

#if HEDGEROW_EMBREE_MAJOR == 4
#include <embree4/rtcore.h>
#else
#include <embree3/rtcore.h>
#endif

#include <cstddef>
#include <type_traits>
#include <utility>

#include "base/lanes.hpp"

namespace hedgerow {

// A packet of rays as Embree has it.
template <int N>
struct RaysOf;
template <>
struct RaysOf<kLanes> {
    using Type = RTCRayHit8;
};
template <>
struct RaysOf<kWideLanes> {
    using Type = RTCRayHit16;
};
template <int N>
using Rays = typename RaysOf<N>::Type;

#if HEDGEROW_EMBREE_MAJOR == 4

using QueryContext = RTCRayQueryContext;
constexpr auto kSceneTakesFilters = RTC_SCENE_FLAG_FILTER_FUNCTION_IN_ARGUMENTS;

inline void init_context(QueryContext& context) { rtcInitRayQueryContext(&context); }

// Closest hits of a packet; `filter`, if given, sees every triangle hit on the way.
template <typename AnyRays>
void intersect(const int* valid, RTCScene scene, QueryContext& context, AnyRays& rays,
               RTCFilterFunctionN filter = nullptr) {
    RTCIntersectArguments arguments;
    rtcInitIntersectArguments(&arguments);
    arguments.context = &context;
    arguments.filter = filter;
    arguments.flags = filter ? RTCRayQueryFlags(RTC_RAY_QUERY_FLAG_COHERENT | RTC_RAY_QUERY_FLAG_INVOKE_ARGUMENT_FILTER)
                             : RTC_RAY_QUERY_FLAG_COHERENT;
    if constexpr (std::is_same_v<AnyRays, RTCRayHit16>)
        rtcIntersect16(valid, scene, &rays, &arguments);
    else
        rtcIntersect8(valid, scene, &rays, &arguments);
}

#else

using QueryContext = RTCIntersectContext;
constexpr auto kSceneTakesFilters = RTC_SCENE_FLAG_CONTEXT_FILTER_FUNCTION;

inline void init_context(QueryContext& context) { rtcInitIntersectContext(&context); }

// Closest hits of a packet; `filter`, if given, sees every triangle hit on the way.
template <typename AnyRays>
void intersect(const int* valid, RTCScene scene, QueryContext& context, AnyRays& rays,
               RTCFilterFunctionN filter = nullptr) {
    context.filter = filter;
    context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
    if constexpr (std::is_same_v<AnyRays, RTCRayHit16>)
        rtcIntersect16(valid, scene, &context, &rays);
    else
        rtcIntersect8(valid, scene, &context, &rays);
}

#endif

// The one device of this process, made on first use.
RTCDevice device();

// Whether Embree traces packets of sixteen as they are (AVX-512). HEDGEROW_LANES=8 in the environment says no.
bool traces_wide_packets();

// Throws std::runtime_error with Embree's own words if a call since the last check failed; std::bad_alloc for memory.
void check_embree(const char* doing);

// Bytes that Embree holds now (buffers and acceleration structures of all live scenes).
std::size_t embree_bytes();

// Owns one reference to an Embree object.
template <typename Handle, void (*release)(Handle)>
class Owned {
  public:
    Owned() = default;
    explicit Owned(Handle handle) : handle_(handle) {}
    Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Owned() {
        if (handle_) release(handle_);
    }
    Handle get() const { return handle_; }
    explicit operator bool() const { return handle_ != nullptr; }

  private:
    Handle handle_ = nullptr;
};

using OwnedScene = Owned<RTCScene, rtcReleaseScene>;
using OwnedGeometry = Owned<RTCGeometry, rtcReleaseGeometry>;

}  // namespace hedgerow
