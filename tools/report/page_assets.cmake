# Script mode: cmake -DOUT=FILE.cpp -DSTYLE=a.css;b.css -DSCRIPT=a.js;b.js -DLIBRARY=c.js -P page_assets.cmake
# Writes the files as byte arrays. A library that is not there gives an empty array: charts then show their tables.
set(BODY "// Generated from tools/report/page/.\n#include \"tools/report/page_assets.h\"\n\nnamespace k3sim {\n\nnamespace {\n\n")
foreach(KIND STYLE SCRIPT LIBRARY)
  set(HEX "")
  foreach(FILE ${${KIND}})
    if(EXISTS ${FILE})
      file(READ ${FILE} ONE HEX)
      string(APPEND HEX "${ONE}" "0a")
    endif()
  endforeach()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" HEX "${HEX}")
  string(REGEX REPLACE "(................................................................)" "\\1\"\n\"" HEX "${HEX}")
  string(APPEND BODY "constexpr char k${KIND}[] =\n\"${HEX}\";\n\n")
endforeach()
string(APPEND BODY "}  // namespace\n\nPageAssets page_assets() {\n"
  "  return {{kSTYLE, sizeof(kSTYLE) - 1}, {kSCRIPT, sizeof(kSCRIPT) - 1}, {kLIBRARY, sizeof(kLIBRARY) - 1}};\n}\n\n"
  "}  // namespace k3sim\n")
file(WRITE ${OUT} "${BODY}")
