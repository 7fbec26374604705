// SPDX-License-Identifier: MIT
#pragma once

/// \file
/// The version of Bracewell. This is its one source: CMake reads the three numbers from here, ./dev the suffix, too.

/// Changes where users have to change their code.
#define BRACEWELL_VERSION_MAJOR 0
/// Changes where something is added.
#define BRACEWELL_VERSION_MINOR 2
/// Changes where something is mended.
#define BRACEWELL_VERSION_PATCH 0
/// "-dev" until the version is released, then "".
#define BRACEWELL_VERSION_SUFFIX "-dev"

/// \cond
#define BRACEWELL_STRINGIFY_TOKEN(token) #token
#define BRACEWELL_STRINGIFY(macro) BRACEWELL_STRINGIFY_TOKEN(macro)
/// \endcond

/// The version as a string literal, for example "0.1.0", or "0.2.0-dev" before the release of 0.2.0.
#define BRACEWELL_VERSION                                                                                    \
  BRACEWELL_STRINGIFY(BRACEWELL_VERSION_MAJOR)                                                               \
  "." BRACEWELL_STRINGIFY(BRACEWELL_VERSION_MINOR) "." BRACEWELL_STRINGIFY(BRACEWELL_VERSION_PATCH)          \
      BRACEWELL_VERSION_SUFFIX
