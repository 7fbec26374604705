# cmake -DROOT=<repository> -P walks.cmake
# What docs/internals.md and the pages of docs/how name is there: every name in `...` with a slash or the ending of a file is a file (`.hpp` may be
# left out, * stands for any letters) or a folder; every other word is a file's name without its ending, a folder, or stands
# in the sources.

cmake_minimum_required(VERSION 3.25)

file(READ ${ROOT}/docs/internals.md page)
file(GLOB pages ${ROOT}/docs/how/*.md)
foreach(path IN LISTS pages)
  file(READ ${path} how)
  string(APPEND page "${how}")
endforeach()
file(GLOB_RECURSE files LIST_DIRECTORIES TRUE RELATIVE ${ROOT} ${ROOT}/include/* ${ROOT}/examples/* ${ROOT}/tests/*
  ${ROOT}/bench/* ${ROOT}/python/* ${ROOT}/docs/* ${ROOT}/c/* ${ROOT}/src/* ${ROOT}/scripts/*)
list(TRANSFORM files PREPEND "/")
string(APPEND paths ";" "${files}" ";")

set(sources "")
foreach(file IN LISTS files)
  if(file MATCHES "^/(include|examples|python|c)/.*\\.(hpp|cpp|py)$")
    file(READ ${ROOT}${file} source)
    string(APPEND sources "${source}")
  endif()
endforeach()

set(errors "")
string(REGEX MATCHALL "`[^`\n]+`" names "${page}")
list(REMOVE_DUPLICATES names)
foreach(name IN LISTS names)
  string(REPLACE "`" "" name "${name}")
  if(NOT name MATCHES "^[A-Za-z0-9_./*:-]+$")
    continue() # a pattern of names, or code
  endif()
  string(REGEX REPLACE "/$" "" path "${name}")
  string(REPLACE "." "\\." path "${path}")
  string(REPLACE "*" "[^/;]*" path "${path}")
  if(paths MATCHES "/${path}(\\.[a-z]+)?;")
    continue()
  endif()
  string(FIND "${sources}" "${name}" found)
  if(name MATCHES "/|\\.(hpp|cpp|py|txt|md)$" OR found EQUAL -1)
    string(APPEND errors "  ${name}\n")
  endif()
endforeach()
list(LENGTH names count)
if(errors OR count LESS 100)
  message(FATAL_ERROR "docs/internals.md and docs/how name ${count} things; not there are\n${errors}")
endif()
message(STATUS "All ${count} names of docs/internals.md and docs/how are there.")
