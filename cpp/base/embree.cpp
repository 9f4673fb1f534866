// SPDX-License-Identifier: Apache-2.0
#include "base/embree.hpp"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace hedgerow {
namespace {

std::atomic<std::ptrdiff_t> bytes_held{0};
std::mutex error_mutex;
std::string first_error;  // the first one since the last check; later ones are usually its consequences
bool was_memory = false;

// Becomes Python's MemoryError, and keeps the words.
class OutOfMemory : public std::bad_alloc {
  public:
    explicit OutOfMemory(std::string text) : text_(std::move(text)) {}
    const char* what() const noexcept override { return text_.c_str(); }

  private:
    std::string text_;
};

void keep_error(void*, RTCError code, const char* text) {
    std::lock_guard lock(error_mutex);
    if (!first_error.empty()) return;
    first_error = text ? text : "unknown error";
    was_memory = code == RTC_ERROR_OUT_OF_MEMORY;
}

bool watch_memory(void*, std::ptrdiff_t bytes, bool) {
    bytes_held += bytes;
    return true;
}

}  // namespace

RTCDevice device() {
    // Never released: worker threads may outlive static destruction.
    static RTCDevice the_device = [] {
        RTCDevice made = rtcNewDevice(nullptr);
        if (!made) throw std::runtime_error("Embree could not start on this machine");
        if (!rtcGetDeviceProperty(made, RTC_DEVICE_PROPERTY_NATIVE_RAY8_SUPPORTED))
            throw std::runtime_error("this build of Embree has no packets of eight rays; use one with AVX2 or NEON2X");
        rtcSetDeviceErrorFunction(made, keep_error, nullptr);
        rtcSetDeviceMemoryMonitorFunction(made, watch_memory, nullptr);
        return made;
    }();
    return the_device;
}

bool traces_wide_packets() {
    static const bool wide = [] {
        const char* lanes = std::getenv("HEDGEROW_LANES");
        return !(lanes && std::string(lanes) == "8") &&
               rtcGetDeviceProperty(device(), RTC_DEVICE_PROPERTY_NATIVE_RAY16_SUPPORTED) != 0;
    }();
    return wide;
}

void check_embree(const char* doing) {
    std::lock_guard lock(error_mutex);
    if (first_error.empty()) return;
    std::string text = std::string("Embree failed while ") + doing + ": " + first_error;
    first_error.clear();
    if (was_memory) throw OutOfMemory(text);
    throw std::runtime_error(text);
}

std::size_t embree_bytes() { return static_cast<std::size_t>(bytes_held.load()); }

}  // namespace hedgerow
