# SPDX-License-Identifier: MIT
"""The operators as those of other packages: `bracewell.hubs.scipy`, `bracewell.hubs.deepinv`, `bracewell.hubs.mrinufft`."""
