# Installs the headers and the CMake package.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/Bracewell)
install(TARGETS Bracewell EXPORT BracewellTargets)
install(EXPORT BracewellTargets NAMESPACE Bracewell:: DESTINATION ${package_dir})
install(DIRECTORY include/bracewell DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")

configure_package_config_file(cmake/BracewellConfig.cmake.in ${PROJECT_BINARY_DIR}/BracewellConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/BracewellConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  ${PROJECT_BINARY_DIR}/BracewellConfig.cmake ${PROJECT_BINARY_DIR}/BracewellConfigVersion.cmake cmake/FindFFTW3.cmake
  DESTINATION ${package_dir})
