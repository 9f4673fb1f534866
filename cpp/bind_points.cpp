// SPDX-License-Identifier: Apache-2.0
#include "bind.hpp"

namespace hedgerow {

void bind_points(nb::module_&) {}

}  // namespace hedgerow
