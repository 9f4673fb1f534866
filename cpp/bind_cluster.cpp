// SPDX-License-Identifier: Apache-2.0
#include "bind.hpp"

namespace hedgerow {

void bind_cluster(nb::module_&) {}

}  // namespace hedgerow
