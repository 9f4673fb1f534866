#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Install a wheel into an empty environment and fire a sweep there: tools/check_wheel.sh WHEEL
#
# The build machine has Embree, so the test must not see it. tools/fire_sweep.py looks at the libraries that are
# really loaded and fails when one of them is not the wheel's own. Where the kernel allows a private mount
# namespace, the system's copies are covered up besides.
set -euo pipefail
wheel=$(realpath "$1")
script=$(realpath "$(dirname "$0")/fire_sweep.py")
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "wheel: installing it into an empty environment"
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet "$wheel"

cat >"$work/hidden" <<'HIDE'
for library in $(ldconfig -p | sed -n 's/.*=> \(.*lib\(embree\|tbb\)[^ ]*\)$/\1/p' | xargs -r realpath | sort -u); do
  mount --bind /dev/null "$library" && echo "wheel: hid $library"
done
HIDE
fire=(env -i PATH=/usr/bin:/bin HOME="$work" "$work/venv/bin/python" -I "$script")
cd "$work"
if unshare --map-root-user --mount true 2>/dev/null; then
  unshare --map-root-user --mount bash -ec '. ./hidden; exec "$@"' hidden "${fire[@]}"
else
  echo "wheel: no private mount namespace here, so the system's libraries stay visible"
  "${fire[@]}"
fi
