// SPDX-License-Identifier: Apache-2.0
#include "pulse/sub_rays.hpp"

#include <stdexcept>

namespace hedgerow {

void require_masks(const Scene& scene) {
    const bool both = scene.answers(Answer::pulse) && scene.answers(Answer::sub_ray);
    if (both && !rtcGetDeviceProperty(device(), RTC_DEVICE_PROPERTY_RAY_MASK_SUPPORTED))
        throw std::runtime_error("this build of Embree has no ray masks, which learned elements beside meshes need");
}

}  // namespace hedgerow
