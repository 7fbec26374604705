# The consumer project that PAGE shows is the one in FOLDER, letter for letter.

file(READ ${PAGE} page)
foreach(file cmake:CMakeLists.txt cpp:main.cpp)
  string(REPLACE ":" ";" file ${file})
  list(GET file 0 language)
  list(GET file 1 name)
  file(READ ${FOLDER}/${name} content)
  string(FIND "${page}" "```${language}\n${content}```" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${PAGE} does not show ${FOLDER}/${name} as it is")
  endif()
endforeach()
