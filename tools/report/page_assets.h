// The files of tools/report/page/ and the charting library, put into the program by tools/report/page_assets.cmake.
// Source: engine-design section 18 (one self-contained file, library inlined at build time).
#pragma once

#include <string_view>

namespace k3sim {

struct PageAssets {
  std::string_view style;    // report.css and the library's style sheet
  std::string_view script;   // page/*.js in the order of the list in page_assets.cmake
  std::string_view library;  // dygraphs, minified; empty when the build machine did not have it
};

PageAssets page_assets();

}  // namespace k3sim
