# Installs the headers, the compiled operators where they are built, the CMake package and the licence.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/Bracewell)
install(TARGETS Bracewell Bracewell_Core Bracewell_Eigen Bracewell_MPI EXPORT BracewellTargets FILE_SET HEADERS)
if(TARGET Bracewell_Compiled)
  install(TARGETS Bracewell_Compiled EXPORT BracewellCompiledTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT BracewellCompiledTargets NAMESPACE Bracewell:: DESTINATION ${package_dir})
endif()
install(EXPORT BracewellTargets NAMESPACE Bracewell:: DESTINATION ${package_dir})

configure_package_config_file(cmake/BracewellConfig.cmake.in ${PROJECT_BINARY_DIR}/BracewellConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/BracewellConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  ${PROJECT_BINARY_DIR}/BracewellConfig.cmake ${PROJECT_BINARY_DIR}/BracewellConfigVersion.cmake
  cmake/BracewellCheckKokkos.cmake cmake/FindFFTW3.cmake cmake/FindPocketFFT.cmake
  DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/Bracewell)
