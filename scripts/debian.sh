# shellcheck shell=bash disable=SC2154,SC2034,SC2016
# Installs what the repository needs from Debian's packages; sourced by ./dev, which defines deps, say, fail and logged.
# As root the distribution's packages are installed with apt-get. Otherwise, and for what the distribution lacks, packages
# are unpacked into $deps with an apt of our own, which leaves the system as it is.

# Packages that are as good when their program came another way.
declare -A program=([g++]=c++ [cmake]=cmake [ninja-build]=ninja [clang-format]=clang-format [doxygen]=doxygen
  [relion]=relion_project)

present() { # present PACKAGE: whether .deps or the system has it
  unpacked "$1" || { [[ -v program[$1] ]] && command -v "${program[$1]}" >/dev/null; } ||
    [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}
unpacked() { grep -qsx -- "$1" "$deps/unpacked"; }
mark_unpacked() { printf '%s\n' "$@" >>"$deps/unpacked"; }

# provide PACKAGE...: installs those of the distribution's packages that are missing.
provide() {
  local package missing=()
  for package; do present "$package" || missing+=("$package"); done
  if [[ ${#missing[@]} == 0 ]]; then
    return
  elif ! command -v apt-get >/dev/null; then
    say "Without apt-get nothing is installed; please install what CMake does not find: ${missing[*]}"
  elif [[ $EUID == 0 ]]; then
    say "Installing with apt-get: ${missing[*]}"
    logged apt-get update || true # an unrelated source may be out of reach
    DEBIAN_FRONTEND=noninteractive logged apt-get -y --no-install-recommends --no-remove \
      -o DPkg::Lock::Timeout=300 install "${missing[@]}"
  else
    unpack_with_dependencies "$deps" "${missing[@]}" && mark_unpacked "${missing[@]}"
  fi
}

# unpack_with_dependencies FOLDER PACKAGE...: packages of the distribution, and what they need and the system lacks.
unpack_with_dependencies() {
  say "Unpacking into ${1#"$PWD"/}: ${*:2}"
  prepare_private_apt
  logged private_apt apt-get -y --no-install-recommends --download-only install "${@:2}" &&
    extract "$1" "$deps/apt/cache/archives"
}

# unpack FOLDER PACKAGE[/SUITE]...: these very packages, from whichever release of Debian has them.
unpack() {
  local folder=$1 archives=$deps/apt/archives
  shift
  say "Unpacking into ${folder#"$PWD"/}: $*"
  prepare_private_apt
  rm -rf "$archives" && mkdir -p "$archives" "$folder"
  (cd "$archives" && logged private_apt apt-get download "$@") && extract "$folder" "$archives"
}

extract() { # extract FOLDER ARCHIVES
  local archive
  mkdir -p "$1/usr/lib" && ln -sfnT usr/lib "$1/lib" # where some packages still put libraries
  for archive in "$2"/*.deb; do
    dpkg-deb --fsys-tarfile "$archive" | tar --extract --keep-directory-symlink --directory "$1" && rm "$archive" ||
      return
  done
}

private_apt() { "$1" --config-file "$deps/apt/apt.conf" "${@:2}"; } # private_apt apt-get|apt-cache ARGUMENTS...

# An apt of our own: the system's sources and three suites of Debian; nothing of the system changes.
prepare_private_apt() {
  [[ ! -v private_apt_ready ]] || return 0
  private_apt_ready=yes
  local apt=$deps/apt keyring=/usr/share/keyrings/debian-archive-keyring.gpg mirror release suite suites
  rm -rf "$apt/sources" "$apt/preferences" && mkdir -p "$apt"/{sources,lists/partial,cache/archives/partial}
  cat >"$apt/apt.conf" <<END
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$apt/sources";
Dir::Etc::Preferences "$apt/preferences";
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Check-Valid-Until "false"; # mirrors can be frozen
Debug::NoLocking "true";
END
  cp /etc/apt/sources.list /etc/apt/sources.list.d/* "$apt/sources" 2>/dev/null || true
  logged private_apt apt-get update || true
  read -r mirror release < <(private_apt apt-get indextargets --format '$(ORIGIN)/$(LABEL) $(REPO_URI) $(CODENAME)' |
    sed -n 's|^Debian/Debian ||p') || return 0
  suites=$(private_apt apt-get indextargets --format '$(CODENAME)')
  for suite in sid trixie "${release%%-*}-backports"; do
    grep -qx "$suite" <<<"$suites" && continue
    echo "deb [signed-by=$keyring] $mirror $suite main" >>"$apt/sources/bracewell.list"
    printf 'Package: *\nPin: release n=%s\nPin-Priority: 50\n\n' "$suite" >>"$apt/preferences"
  done
  logged private_apt apt-get update || true
}

# cmake_finds PACKAGE VERSION: whether CMake finds an installed package that is whole.
cmake_finds() {
  rm -rf "$deps/probe" && mkdir "$deps/probe"
  echo "cmake_minimum_required(VERSION 3.25)
project(probe CXX)
find_package($* REQUIRED CONFIG)" >"$deps/probe/CMakeLists.txt"
  logged cmake -G Ninja -S "$deps/probe" -B "$deps/probe/build"
}

candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/ *Candidate: //p'; }

provide_kokkos() {
  if unpacked kokkos || cmake_finds Kokkos '5.0...<6'; then return; fi
  [[ $(candidate libkokkos-dev) != [5-9].* ]] || provide libkokkos-dev || true
  if cmake_finds Kokkos '5.0...<6'; then return; fi

  local library libraries configuration
  prepare_private_apt
  library=$(private_apt apt-cache depends libkokkos-dev 2>/dev/null |
    sed -n 's/ *Depends: \(libkokkos[0-9.]*\)$/\1/p') || true
  if [[ -z $library ]]; then
    say "No package of Kokkos >= 5.0 is at hand: CMake will download its release and build it."
    return
  fi
  unpack "$deps" libkokkos-dev "$library" || fail "Kokkos could not be downloaded, see .deps/log."

  # Debian's CMake package names /usr, and two libraries without content that it does not contain.
  libraries=$(dirname "$deps"/usr/lib/*/libkokkoscore.so)
  configuration=$libraries/cmake/Kokkos
  sed -i 's|"/usr/include/kokkos"|"${_IMPORT_PREFIX}/include/kokkos"|' "$configuration/KokkosTargets.cmake"
  for library in algorithms simd; do
    [[ -e $libraries/libkokkos$library.a ]] || ar rcs "$libraries/libkokkos$library.a"
  done

  # Where the system's C and C++ libraries are too old for Kokkos, programs run with newer ones beside it.
  # (No pipe: a reader that stops at the first match would end ldd, and pipefail take that for its answer.)
  if [[ $(ldd "$libraries/libkokkoscore.so" 2>&1) == *"version "*" not found"* ]]; then
    unpack "$deps/runtime" {libc6,libstdc++6,libgcc-s1,libgomp1}/sid ||
      fail "the C and C++ libraries that Kokkos needs could not be downloaded, see .deps/log."
    cat >>"$configuration/KokkosConfig.cmake" <<'END'

file(GLOB _loader ${CMAKE_CURRENT_LIST_DIR}/../../../../../runtime/usr/lib/*/ld-linux*.so.*)
get_filename_component(_loader ${_loader} ABSOLUTE)
get_filename_component(_runtime ${_loader} DIRECTORY)
set_property(TARGET Kokkos::kokkoscore APPEND PROPERTY INTERFACE_LINK_OPTIONS LINKER:--allow-shlib-undefined
  LINKER:--disable-new-dtags LINKER:-rpath,${_runtime} LINKER:--dynamic-linker=${_loader})
END
  fi
  mark_unpacked kokkos
}

provide_catch2() {
  if unpacked catch2 || cmake_finds Catch2 3; then return; fi
  if [[ $(candidate libcatch2-dev) == 3.* ]]; then
    provide libcatch2-dev
  elif [[ $(candidate catch2) == 3.* ]]; then
    provide catch2
  else
    unpack "$deps" libcatch2-dev/bookworm-backports && mark_unpacked catch2
  fi
}

# A compiler for HIP, with headers from Debian unstable.
provide_hip() {
  if unpacked hip; then return; fi
  unpack_with_dependencies "$deps/hip" clang-19 clang-tools-19 lld-19 llvm-19 libomp-19-dev || return
  unpack "$deps/hip" {libamdhip64-dev,libhipfft-dev,libhsa-runtime-dev,librocprim-dev,librocthrust-dev}/sid \
    rocm-device-libs-17/trixie || return
  mkdir -p "$deps/hip/usr/bin" && cp "$deps/hip/usr/share/hip/version" "$deps/hip/usr/bin/.hipVersion"
  mark_unpacked hip
}
