#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build the native core with AddressSanitizer and UBSan and run its tests: tools/asan.sh [PYTEST ARGUMENT...]
# `make asan` has set .venv up before. The sanitised build lives in build/asan and leaves .venv as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/asan
python=$PWD/.venv/bin/python
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
compiler=${CXX:-c++}
flags="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1"

# The module alone, lightly optimised: no stub, no installation. What did not change is not built again.
echo "asan: building"
PATH="$PWD/.venv/bin:$PATH" cmake -S . -B "$work/cmake" -G Ninja -DCMAKE_BUILD_TYPE=None \
  -DHEDGEROW_OPTIMISE=-O1 -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_SHARED_LINKER_FLAGS="$flags" \
  -DCMAKE_MODULE_LINKER_FLAGS="$flags" -DPython_EXECUTABLE="$python" \
  -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" >"$work.log"
PATH="$PWD/.venv/bin:$PATH" cmake --build "$work/cmake" --target _core

# A package of links to the sources beside the sanitised core, and a venv that sees the packages of .venv, but not its
# editable hedgerow: a folder named in a .pth file is searched for packages, its own .pth files are not run.
rm -rf "$work/package"
mkdir -p "$work/package"
cp -rs "$PWD/src/hedgerow" "$work/package/"
rm -f "$work"/package/hedgerow/_core*.so
cp "$work"/cmake/_core*.so "$work/package/hedgerow/"
[ -x "$work/venv/bin/python" ] || "$python" -m venv --without-pip "$work/venv"
echo "$packages" >"$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/packages.pth"

# Python itself leaks on purpose. Without libstdc++ before it, libasan aborts at the first C++ exception. Memory is
# limited here, since ulimit -v would forbid the shadow memory.
preload="$($compiler -print-file-name=libasan.so):$($compiler -print-file-name=libstdc++.so)"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:hard_rss_limit_mb=${ASAN_MEMORY_MB:-8000}
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
[ $# -gt 0 ] || set -- tests/core tests/world tests/pulse
PYTHONPATH=$work/package LD_PRELOAD=$preload "$work/venv/bin/python" -m pytest -p no:cacheprovider "$@"
