# shellcheck shell=bash disable=SC2154,SC2034
# Kokkos from its source, for GPUs and for installations that stand alone; sourced by ./dev.

# kokkos_source: sets source to a folder with Kokkos' source: the one given, or, once, that of the release or of Debian.
kokkos_source() {
  source=${KOKKOS_SOURCE:-$deps/source/kokkos}
  [[ ! -e $source/CMakeLists.txt ]] || return 0
  [[ ! -v KOKKOS_SOURCE ]] || fail "KOKKOS_SOURCE: expected a folder with Kokkos' source, found $KOKKOS_SOURCE"
  say "Downloading the source of Kokkos"
  mkdir -p "$deps/source"
  logged cmake -D FOLDER="$deps/source" -P scripts/download_kokkos.cmake || debian_kokkos_source
}

# The source package of Debian unstable.
debian_kokkos_source() {
  local folder=$deps/source/debian keyring=/usr/share/keyrings/debian-archive-keyring.gpg mirror archive
  command -v apt-get >/dev/null || return
  prepare_private_apt
  mirror=$(sed -n 's|^deb \[[^]]*\] \(.*\) sid main$|\1|p' "$deps/apt/sources/bracewell.list" | sed -n 1p) || return
  echo "deb-src [signed-by=$keyring] $mirror sid main" >"$deps/apt/sources/source.list"
  rm -rf "$folder" && mkdir -p "$folder"
  logged private_apt apt-get update || true
  (cd "$folder" && logged private_apt apt-get --download-only source kokkos) || return
  archive=$(printf '%s\n' "$folder"/kokkos_[5-9].*.orig.tar.* | sed -n 1p)
  mkdir "$folder/kokkos" && tar --extract --strip-components 1 --directory "$folder/kokkos" --file "$archive" &&
    rm -rf "$deps/source/kokkos" && mv "$folder/kokkos" "$deps/source/kokkos"
}

# build_kokkos SOURCE BUILD FOLDER OPTIONS...: a static, position-independent one is installed in FOLDER.
build_kokkos() {
  logged cmake -G Ninja -S "$1" -B "$2" -DCMAKE_INSTALL_PREFIX="$3" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_CXX_STANDARD=20 -DKokkos_ENABLE_OPENMP=ON \
    "${@:4}" &&
    logged cmake --build "$2" --parallel "$(nproc)" --target install &&
    rm -rf "$2"
}

# kokkos_for_installation FOLDER: sets Kokkos_ROOT to a Kokkos that is there without this checkout: the one given, the
# system's, one in FOLDER, or one that is built into it from source.
kokkos_for_installation() {
  local source build=build/kokkos
  [[ -z ${Kokkos_ROOT:-} ]] || return 0
  [[ $EUID != 0 || $(candidate libkokkos-dev) != [5-9].* ]] || provide libkokkos-dev || true
  if cmake_finds Kokkos '5.0...<6'; then
    Kokkos_ROOT=$(sed -n 's/^Kokkos_DIR:PATH=//p' "$deps/probe/build/CMakeCache.txt")
  elif [[ -e $1/lib/cmake/Kokkos/KokkosConfig.cmake ]]; then
    Kokkos_ROOT=$1
  elif kokkos_source; then
    say "Building Kokkos into $1 (a minute)"
    # One unit for each library takes a third of the time, where a release of Kokkos compiles so. Without extensions of the
    # compiler Kokkos would turn them off, with a warning, in every project that finds it.
    rm -rf $build
    build_kokkos "$source" $build "$1" -DCMAKE_CXX_EXTENSIONS=ON -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 ||
      { rm -rf $build && build_kokkos "$source" $build "$1" -DCMAKE_CXX_EXTENSIONS=ON; } || fail "Kokkos could not be built, see .deps/log."
    install -D -m 644 -t "$1/share/licenses/Kokkos" "$source/LICENSE" || true
    Kokkos_ROOT=$1
  else
    provide_kokkos
    say "The source of Kokkos could not be had, see .deps/log: the installation needs the Kokkos in .deps here, so that this" \
      "checkout has to stay where it is. KOKKOS_SOURCE names a folder with the source."
    return 0
  fi
  export Kokkos_ROOT
}
