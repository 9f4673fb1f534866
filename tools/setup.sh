#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prepare a machine for `make`: system packages, .venv, Python packages, the native build.
#
#   tools/setup.sh [GROUP...]     GROUP: further dependency groups of pyproject.toml
#
# Each step leaves a stamp, written last and keyed on all that the step reads. So a second run finds nothing
# to do, and a run that was interrupted is taken up again at the step where it stopped.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamps=$venv/.stamps
log=build/setup.log
wanted_python=${PYTHON:-}
python=${PYTHON:-python3}
export PIP_DISABLE_PIP_VERSION_CHECK=1

stop() {
  echo "set-up: $*" >&2
  exit 1
}

# run TITLE COMMAND...: one line on the screen, everything else in the log.
run() {
  local title=$1
  shift
  echo "set-up: $title"
  echo "== $title: $*" >>"$log"
  if ! "$@" >>"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    stop "failed while $title; the whole output is in $log"
  fi
}

# ---- system packages ----------------------------------------------------------------------------------------

# Where CMake will look besides the compiler's own folders: conda, Homebrew, the user's prefixes.
prefixes() {
  echo "${CMAKE_PREFIX_PATH:-}" | tr ':' '\n' | tr ';' '\n'
  echo "${CONDA_PREFIX:-}"
  if command -v brew >/dev/null; then brew --prefix; fi
}

has_header() {
  local prefix flags=()
  while read -r prefix; do
    if [ -n "$prefix" ]; then flags+=("-I$prefix/include"); fi
  done < <(prefixes)
  # ${flags[@]+...}: bash 3.2 of macOS calls an empty array unset.
  echo "#include <$1>" | ${CXX:-c++} ${flags[@]+"${flags[@]}"} -E -x c++ - >/dev/null 2>&1
}

python_has() {
  "$python" -c "$1" >/dev/null 2>&1
}

# Names of the Debian packages for what is missing here, and nothing when all is there.
missing_packages() {
  local version
  version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  echo 'int main() {}' | ${CXX:-c++} -x c++ -fsyntax-only - 2>/dev/null || echo g++
  has_header embree4/rtcore.h || has_header embree3/rtcore.h || echo libembree-dev
  has_header oneapi/tbb/version.h || echo libtbb-dev
  # Debian ships the venv module without ensurepip, which it needs.
  python_has 'import ensurepip, venv' || echo "$version-venv"
  python_has 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))' ||
    echo "$version-dev"
}

apt_install() {
  "${as_root[@]}" dpkg --configure -a || true # left over from an interrupted run
  "${as_root[@]}" apt-get update -q || true # an unreachable extra source must not stop us
  "${as_root[@]}" apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

install_system_packages() {
  local packages hint
  packages=$(missing_packages | tr '\n' ' ')
  packages=${packages% }
  [ -n "$packages" ] || return 0
  hint="then run make again (Embree 3.13 or newer and oneTBB from conda-forge or Homebrew do as well)"
  if ! command -v apt-get >/dev/null; then
    stop "there is no apt-get here; install what Debian calls $packages, $hint"
  elif [ "$(id -u)" = 0 ]; then
    as_root=(env DEBIAN_FRONTEND=noninteractive)
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }; then
    as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
  else
    stop "neither root nor sudo here; have root run 'apt-get install $packages', $hint"
  fi
  # shellcheck disable=SC2086 # a list of names
  run "installing system packages: $packages" apt_install $packages
}

# ---- the virtual environment --------------------------------------------------------------------------------

check_python() {
  command -v "$python" >/dev/null || stop "no $python here; install Python 3.11 or newer, or name one: make PYTHON=..."
  python_has 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    stop "$python is $("$python" --version 2>&1), Hedgerow needs 3.11 or newer; name one: make PYTHON=python3.11 ..."
}

# A venv half made, made by an older Python, or moved here from another folder does not count.
venv_works() {
  local version='import pip, sys; print(sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))' found
  [ -x $venv/bin/python ] && grep -qF "$PWD/$venv" $venv/bin/activate 2>/dev/null || return 1
  found=$($venv/bin/python -c "$version" 2>/dev/null) || return 1
  [ -z "$wanted_python" ] || [ "$found" = "$("$python" -c 'import sys; print(sys.version_info[:2])')" ]
}

make_venv() {
  run "making a virtual environment in $venv" "$python" -m venv --clear $venv
}

# ---- stamps -------------------------------------------------------------------------------------------------

is_current() { [ "$(cat "$stamps/$1" 2>/dev/null)" = "$2" ]; }

stamp() {
  mkdir -p "$stamps"
  echo "$2" >"$stamps/$1.part"
  mv "$stamps/$1.part" "$stamps/$1"
}

# ---- Python packages ----------------------------------------------------------------------------------------

install_groups() {
  local key group groups=() options=()
  key=$(cksum pyproject.toml)
  for group in build "$@"; do
    is_current "group-$group" "$key" && continue
    groups+=("$group")
    options+=(--group "$group")
  done
  [ ${#groups[@]} -gt 0 ] || return 0
  # Dependency groups need pip 25.1; Debian 12 has 23.
  run "updating pip" $venv/bin/python -m pip install --upgrade "pip>=25.1"
  run "installing Python packages: ${groups[*]}" $venv/bin/python -m pip install "${options[@]}"
  for group in "${groups[@]}"; do stamp "group-$group" "$key"; done
}

# ---- the native build ---------------------------------------------------------------------------------------

build_key() {
  grep __version__ src/hedgerow/__init__.py
  find pyproject.toml CMakeLists.txt cpp -type f | LC_ALL=C sort | xargs cksum
}

# An editable install: Python files are read where they are, only a changed build_key needs this again. Not
# isolated, so that CMake finds the same nanobind in the next build and compiles only what changed.
build() {
  PATH="$PWD/$venv/bin:$PATH" $venv/bin/python -m pip install --no-build-isolation --editable .
}

install_hedgerow() {
  local key
  key=$(build_key)
  if is_current build "$key" && compgen -G "$venv/lib/python*/site-packages/hedgerow/_core*" >/dev/null; then
    [ -e src/hedgerow/_core.pyi ] && return 0
  else
    install_system_packages
    run "building hedgerow (a minute the first time)" build
  fi
  # Type checkers look for the generated stub beside the Python source.
  cp $venv/lib/python*/site-packages/hedgerow/_core.pyi src/hedgerow/
  stamp build "$key"
}

trap 'stop "interrupted; make goes on from here next time"' INT TERM
mkdir -p build
if command -v flock >/dev/null; then # two makes at once take turns
  exec 9>build/.setup.lock
  flock 9
fi
check_python
if ! venv_works; then
  : >"$log"
  install_system_packages
  make_venv
fi
install_groups "$@"
install_hedgerow
