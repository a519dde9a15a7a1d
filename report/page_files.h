// The files of report/page and the chart library, as text in the program (made by cmake/embed_files.cmake).
#pragma once

#include <string_view>

namespace reckon {

extern const std::string_view kPageHtml;    // page.html, with {title}, {summary}, {verdict}, {style}, {data}, {script}
extern const std::string_view kPageStyle;   // page.css
extern const std::string_view kPageScript;  // Chart.js, then the scripts of report/page

}  // namespace reckon
