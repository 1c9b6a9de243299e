# shellcheck shell=bash
# Compiler, build tools and libraries from the distribution. Each is looked for first (a thing may well have come
# some other way), and only what is missing is installed.

meson_minimum=1.0.1

compiler() { echo "${CXX:-g++}"; }

has_header() {
  printf '#if !__has_include(<%s>)\n#error missing\n#endif\n' "$1" | $(compiler) -E -x c++ - > /dev/null 2>&1
}

# The compiler prints a full path for a library it finds, and the bare name for one it does not.
has_library() { [[ $($(compiler) -print-file-name="$1" 2>/dev/null) == /* ]]; }

compiler_is_new_enough() {
  echo '#include <concepts>
        #if __cplusplus < 202002L || (!defined(__clang__) && __GNUC__ < 11)
        #error too old
        #endif' | $(compiler) -std=c++20 -E -x c++ - > /dev/null 2>&1
}

has_meson() {
  local version
  version=$(meson --version 2>/dev/null) && version_at_least "$version" "$meson_minimum"
}

distribution_has_meson() {
  local candidate
  candidate=$(apt-cache policy meson 2>/dev/null | sed -n 's/^ *Candidate: *\([0-9.]*\).*/\1/p')
  [ -n "$candidate" ] && version_at_least "$candidate" "$meson_minimum"
}

missing_packages() {
  compiler_is_new_enough || echo g++
  command -v ninja > /dev/null || echo ninja-build
  command -v pkg-config > /dev/null || echo pkg-config
  command -v python3 > /dev/null || echo python3
  has_header spdlog/spdlog.h || echo libspdlog-dev
  has_header fmt/format.h || echo libfmt-dev
  { has_header capstone/capstone.h && has_library libcapstone.a; } || echo libcapstone-dev
  has_header gtest/gtest.h || echo libgtest-dev
  has_header CLI/CLI.hpp || echo libcli11-dev
  has_header nlohmann/json.hpp || echo nlohmann-json3-dev
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# install PACKAGE...
install() {
  if ! command -v apt-get > /dev/null; then
    fail "please install what Debian and Ubuntu call: $*"
  fi
  if [ "$(id -u)" != 0 ] && ! command -v sudo > /dev/null; then
    fail "please have these packages installed (needs root, and there is no sudo here): apt-get install $*"
  fi
  step "installing $*"
  quietly "$build/setup.log" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@"
}

update_package_lists() {
  [ -z "${package_lists_updated:-}" ] || return 0
  package_lists_updated=yes
  if command -v apt-get > /dev/null && { [ "$(id -u)" = 0 ] || command -v sudo > /dev/null; }; then
    step "reading package lists"
    quietly "$build/setup.log" as_root apt-get update
  fi
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} -gt 0 ]; then
    update_package_lists
    install "${missing[@]}"
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} = 0 ] || fail "still missing or too old after installing: ${missing[*]} (g++ must be 11 or newer)"
  fi

  [ ! -x "$venv/bin/meson" ] || PATH=$venv/bin:$PATH
  has_meson && return
  update_package_lists
  if ! command -v meson > /dev/null && distribution_has_meson; then
    install meson
  else
    private_python
    step "installing Meson into $venv (the distribution's is older than $meson_minimum)"
    quietly "$build/setup.log" "$venv/bin/pip" install "meson==1.3.2"
    PATH=$venv/bin:$PATH
  fi
  hash -r
  has_meson || fail "no Meson $meson_minimum or newer could be installed"
}

# Whether clang can build a program with libFuzzer and the sanitizers, C++ library included.
has_fuzzer() {
  local program status=0
  program=$(mktemp)
  printf '#include <string>\nextern "C" int LLVMFuzzerTestOneInput(const unsigned char*, size_t) { return std::string().size(); }\n' |
    clang++ -std=c++20 -fsanitize=fuzzer,address,undefined -x c++ - -o "$program" > /dev/null 2>&1 || status=1
  rm -f "$program"
  return $status
}

# Debian 12 and later Ubuntus have the sanitizers' runtime in a package of its own; in Ubuntu 22.04 it comes with clang.
fuzzer_packages() {
  echo clang
  ! apt-cache show libclang-rt-dev > /dev/null 2>&1 || echo libclang-rt-dev
}

# For tests only, which are skipped without it.
install_fuzzer() {
  ! has_fuzzer || return 0
  update_package_lists
  local packages
  mapfile -t packages < <(fuzzer_packages)
  (install "${packages[@]}") || step "no clang with libFuzzer: the fuzz targets are left out"
}

# A private Python environment, so that nothing is installed among the user's own packages.
private_python() {
  [ -x "$venv/bin/pip" ] && return
  if ! python3 -c 'import ensurepip, venv' 2> /dev/null; then
    update_package_lists
    install python3-venv
  fi
  step "making a private Python environment in $venv"
  quietly "$build/setup.log" python3 -m venv --clear "$venv"
}
