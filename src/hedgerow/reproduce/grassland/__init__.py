# SPDX-License-Identifier: Apache-2.0
"""Wild grassland by the square kilometre: grass grown and learned (nursery), a site of it (site), driven through."""
