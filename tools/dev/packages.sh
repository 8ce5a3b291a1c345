# Debian packages that the program needs, and a function that installs the missing ones (as root) or says how.
# Sourced by tools/quickstart, tools/test and .ci/run. Safe to repeat; takes a few milliseconds when nothing is missing.

K3SIM_BUILD_PACKAGES="cmake g++ ninja-build ccache libfmt-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libeigen3-dev
zlib1g-dev libboost-dev doctest-dev libbenchmark-dev libjs-dygraphs"
K3SIM_TEST_PACKAGES="python3 chromium fonts-dejavu-core python3-pandas"  # reports in a browser, CSV files in pandas
K3SIM_CHECK_PACKAGES="git python3 clang-format clang-tidy"

# install_missing PACKAGE...
install_missing() {
  local missing="" package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "error: Debian packages are missing. Install them with:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing" >&2
    return 2
  fi
  echo "installing:$missing" >&2
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1 || {
    apt-get update -q >/dev/null
    apt-get install -y -q --no-install-recommends $missing >/dev/null
  }
}
