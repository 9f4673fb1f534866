#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build the native core with AddressSanitizer and UBSan and run its tests: tools/asan.sh [PYTEST ARGUMENT...]
# `make asan` has set .venv up before. The sanitised build lives in build/asan and leaves .venv as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/asan
packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
preload="$(${CXX:-c++} -print-file-name=libasan.so):$(${CXX:-c++} -print-file-name=libubsan.so)"
flags="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g"

# A venv that sees the packages of .venv, but not its editable hedgerow: a folder named in a .pth file is
# searched for packages, its own .pth files are not run.
[ -x "$work/venv/bin/python" ] || .venv/bin/python -m venv --without-pip "$work/venv"
echo "$packages" >"$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/packages.pth"

# Python itself leaks on purpose, and the stub generator of the build loads the sanitised module.
export ASAN_OPTIONS=detect_leaks=0
echo "asan: building"
PATH="$PWD/.venv/bin:$PATH" CXXFLAGS=$flags LDFLAGS=$flags LD_PRELOAD=$preload \
  "$work/venv/bin/python" -m pip install --quiet --no-build-isolation --no-deps --force-reinstall \
  -C build-dir="$work/cmake" -C cmake.build-type=RelWithDebInfo -C install.strip=false .
[ $# -gt 0 ] || set -- tests/world # the tests that fire rays
LD_PRELOAD=$preload "$work/venv/bin/python" -m pytest "$@"
