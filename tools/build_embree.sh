#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build oneTBB and Embree from their sources into a prefix: tools/build_embree.sh PREFIX
# For systems that package neither, above all the images in which Linux wheels are built.
set -euo pipefail
prefix=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build NAME TAG URL OPTION...
build() {
  local name=$1 tag=$2 url=$3
  shift 3
  git clone --quiet --depth 1 --branch "$tag" "$url" "$work/$name"
  cmake -S "$work/$name" -B "$work/$name-build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_PREFIX_PATH="$prefix" "$@"
  cmake --build "$work/$name-build" --parallel
  cmake --install "$work/$name-build"
}

build tbb v2022.0.0 https://github.com/uxlfoundation/oneTBB.git -DTBB_TEST=OFF -DTBB_STRICT=OFF
build embree v4.4.0 https://github.com/RenderKit/embree.git \
  -DEMBREE_ISPC_SUPPORT=OFF -DEMBREE_TUTORIALS=OFF -DEMBREE_TASKING_SYSTEM=TBB -DEMBREE_RAY_MASK=ON
