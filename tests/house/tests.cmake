# The rules of the house, which no compiler knows.

add_test(NAME house_rooms COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/rooms.cmake)
add_test(NAME house_documented COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}
  -DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/documented -P ${CMAKE_CURRENT_LIST_DIR}/documented.cmake)
set_tests_properties(house_documented PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
add_test(NAME house_snippets COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/snippets.cmake)
add_test(NAME house_versions COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/versions.cmake)
add_test(NAME house_includes COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/includes.cmake)
add_test(NAME house_walks COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/walks.cmake)
add_test(NAME house_words COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/words.cmake)
add_test(NAME house_doors COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/doors.cmake)
add_test(NAME house_prose COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/prose.cmake)
add_test(NAME house_prose_finds COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DPAGES=tests/house/prose_bad.md -DLIMIT=50
  -P ${CMAKE_CURRENT_LIST_DIR}/prose.cmake)
set_tests_properties(house_prose_finds PROPERTIES PASS_REGULAR_EXPRESSION
  "a sentence of 4.*joined by a semicolon.*not-there.md, which.*.color. is not British.*.that of., which wants a noun.*a sentence of 3 numbers.*words, at most 50.*words on average.*neither a block")
find_program(python3 python3)
mark_as_advanced(python3)
if(python3)
  add_test(NAME house_commands COMMAND ${python3} -B ${PROJECT_SOURCE_DIR}/scripts/check_pages.py --list)
  add_test(NAME house_picture COMMAND ${python3} ${PROJECT_SOURCE_DIR}/docs/gridding-strategies.py --check)
  add_test(NAME seeds_page COMMAND ${python3} -B ${PROJECT_SOURCE_DIR}/bench/seeds/page.py --check)
  add_test(NAME seeds_quick COMMAND ${python3} -B ${PROJECT_SOURCE_DIR}/bench/seeds/test_seeds.py)
endif()
