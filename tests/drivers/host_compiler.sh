#!/usr/bin/env bash
# host_compiler.sh NVCC_WRAPPER ARGUMENTS...: compiles what has no kernels with the compiler of hosts that nvcc_wrapper takes. (Its own
# --host-only loses the quotes of definitions.)

arguments=()
for argument in "${@:2}"; do
  case $argument in
  -extended-lambda | --extended-lambda | -Wext-lambda-* | -arch=* | --expt-*) ;;
  *) arguments+=("$argument") ;;
  esac
done
exec "${NVCC_WRAPPER_DEFAULT_COMPILER:-g++}" "${arguments[@]}"
