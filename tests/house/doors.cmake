# cmake -DROOT=<repository> -P doors.cmake
# A public header shows what is for users first: before its first documented name stand at most 8 lines of namespace Impl,
# for declarations, before its last one at most 40.

cmake_minimum_required(VERSION 3.25)

# Headers that are still to be turned round. None are added.
set(still_wrong
  geometry/ctf.hpp
  geometry/ctf_gradients.hpp
  geometry/symmetry.hpp
  optimize/adam.hpp
  project/backproject.hpp
  project/filter_gradients.hpp
  project/project.hpp
  ptychography/exit_wave.hpp
  ptychography/object.hpp
  ptychography/probe.hpp
  ptychography/propagator.hpp
  ptychography/scan_positions.hpp
  reconstruct/fourier_shell_correlation.hpp
  reconstruct/pad_crop.hpp
  reconstruct/rolloff.hpp
  reconstruct/shells.hpp
  reconstruct/spectrum_gradients.hpp
  tomography/detector.hpp
  tomography/outliers.hpp
  tomography/preprocess.hpp
)

set(errors "")
set(count 0)
set(include ${ROOT}/include/bracewell)
file(GLOB_RECURSE headers RELATIVE ${include} ${include}/*.hpp)
list(FILTER headers EXCLUDE REGEX "^impl/|/detail/")
foreach(header IN LISTS headers)
  math(EXPR count "${count} + 1")
  file(READ ${include}/${header} content)
  string(REGEX REPLACE "\n/// \\\\file\n(///[^\n]*\n)*" "\n" content "${content}") # is no name's
  set(inside "") # line ends of the blocks of namespace Impl so far
  set(first "")
  set(last "")
  set(rest TRUE)
  while(rest)
    set(rest FALSE)
    set(shown "${content}")
    if(content MATCHES "\nnamespace (Bracewell::)?Impl {")
      set(rest TRUE)
      string(FIND "${content}" "${CMAKE_MATCH_0}" begin)
      string(SUBSTRING "${content}" 0 ${begin} shown)
      string(SUBSTRING "${content}" ${begin} -1 content)
      if(NOT content MATCHES "\n} // namespace (Bracewell::)?Impl\n")
        string(APPEND errors "  ${header}: a namespace Impl does not end in `} // namespace Impl`\n")
        break()
      endif()
      string(FIND "${content}" "${CMAKE_MATCH_0}" end)
      string(SUBSTRING "${content}" 0 ${end} block)
      string(SUBSTRING "${content}" ${end} -1 content)
    endif()
    string(FIND "${shown}" "\n/// " documented)
    if(NOT documented EQUAL -1)
      string(LENGTH "${inside}" last)
      if(first STREQUAL "")
        set(first ${last})
      endif()
    endif()
    string(REGEX REPLACE "[^\n]" "" ends "${block}")
    string(APPEND inside "${ends}")
  endwhile()
  if(first STREQUAL "" OR (first LESS_EQUAL 8 AND last LESS_EQUAL 40))
    if(header IN_LIST still_wrong)
      message(STATUS "${header} is right now: strike it off the list.")
    endif()
  elseif(header IN_LIST still_wrong)
    message(STATUS "${header}: ${first} lines of namespace Impl before the first name for users, ${last} before the last.")
  else()
    string(APPEND errors "  ${header}: ${first} lines of namespace Impl before the first name for users, ${last} before the last\n")
  endif()
endforeach()

if(errors OR count EQUAL 0)
  message(FATAL_ERROR "${count} public headers\n${errors}")
endif()
message(STATUS "${count} public headers show what is for users first.")
