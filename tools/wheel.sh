#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build a self-contained wheel in dist/ and test it. `make wheel` has set the environment up before.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

rm -rf dist build/wheel
echo "wheel: building"
python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheel .
echo "wheel: copying Embree and TBB into it"
case $(uname -s) in
  Linux) repair=(auditwheel repair) ;;
  Darwin) repair=(delocate-wheel) ;;
  *) echo "wheel: on this system use cibuildwheel" >&2 && exit 1 ;;
esac
"${repair[@]}" --wheel-dir dist build/wheel/*.whl >build/wheel.log 2>&1 || { cat build/wheel.log >&2 && exit 1; }
tools/check_wheel.sh dist/*.whl
ls -sh dist/*.whl
