# shellcheck shell=bash disable=SC2154,SC2034,SC2016
# What ./dev --gpu does: finds the GPU's compiler and architecture, and a Kokkos for it; sourced by ./dev.

# choose_gpu: sets preset (cuda or hip), architecture (as Kokkos names it) and gpu (what there is to run on, or nothing).
choose_gpu() {
  gpu=''
  if command -v nvcc >/dev/null; then
    preset=cuda
    local capability
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -n 1p) || capability=
    case $capability in
    [0-9]*.[0-9])
      gpu="compute capability $capability"
      case ${capability%.*} in
      7) architecture=VOLTA7${capability#*.} && [[ $capability != 7.5 ]] || architecture=TURING75 ;;
      8) architecture=AMPERE8${capability#*.} && [[ $capability != 8.9 ]] || architecture=ADA89 ;;
      9) architecture=HOPPER90 ;;
      *) architecture=BLACKWELL${capability/./} ;;
      esac
      ;;
    *) architecture=HOPPER90 ;;
    esac
  elif command -v hipcc >/dev/null; then
    preset=hip
    local name
    name=$(rocminfo 2>/dev/null | sed -n 's/^ *Name: *\(gfx[0-9a-f]*\) *$/\1/p' | sed -n 1p) || name=
    gpu=$name
    name=${name:-gfx90a}
    architecture=AMD_${name^^}
  else
    fail "--gpu needs nvcc (CUDA 13) or hipcc (ROCm) on the PATH; neither is there."
  fi
  build=build/$preset
  if [[ -v BRACEWELL_GPU_ARCH ]]; then
    architecture=$BRACEWELL_GPU_ARCH
  elif [[ -z $gpu ]]; then
    say "No GPU is visible: building for $architecture. BRACEWELL_GPU_ARCH names another (AMPERE80, AMD_GFX942, ...)."
  fi
}

# provide_gpu_kokkos: sets Kokkos_ROOT to a Kokkos for that GPU: the one given, or one built here from its source, once.
provide_gpu_kokkos() {
  [[ -z ${Kokkos_ROOT:-} ]] || return 0
  local folder=$deps/kokkos-${architecture,,} source compiler=hipcc
  export Kokkos_ROOT=$folder
  [[ ! -e $folder/complete ]] || return 0
  kokkos_source ||
    fail "Kokkos could not be downloaded, see .deps/log. Where there is no network, KOKKOS_SOURCE names a folder with it."
  say "Building Kokkos for $architecture (some minutes, once)"
  [[ $preset != cuda ]] || compiler=$(readlink -f "$source")/bin/nvcc_wrapper
  build_kokkos "$source" "$folder/build" "$folder" -DCMAKE_CXX_EXTENSIONS=OFF -DCMAKE_CXX_COMPILER="$compiler" "-DKokkos_ENABLE_${preset^^}=ON" \
    "-DKokkos_ARCH_$architecture=ON" || fail "Kokkos could not be built, see .deps/log."
  : >"$folder/complete"
}

gpu_compiler() {
  if [[ $preset == hip ]]; then
    command -v hipcc
  else
    echo "$Kokkos_ROOT/bin/nvcc_wrapper"
  fi
}
