# cmake -DPAGE=<page> -DFILE=<file> -DLANGUAGE=<of the block> -P page.cmake
# The page shows the file letter for letter.

file(READ ${PAGE} page)
file(READ ${FILE} content)
string(FIND "${page}" "```${LANGUAGE}\n${content}```" position)
if(position EQUAL -1)
  message(FATAL_ERROR "${PAGE} does not show ${FILE} as it is")
endif()
