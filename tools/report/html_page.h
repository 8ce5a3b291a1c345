// One self-contained HTML file: sections described as data, drawn by the scripts of tools/report/page/ that are inlined
// together with the data. Works offline; without a charting library at build time charts fall back to their tables.
//
//   HtmlPage page("Sweep of k3_2048_h800", "Best of 8,192 layouts: 12.4 s per step ...");   // title, the answer
//   page.figures("The answer", {{"step_time_s", "step time", "12.4", "s", "prediction"}});
//   page.table("Cost per GPU", {.id = "gpus", .caption = "...", .source = "profile", .columns = {...}, .rows = {...}});
//   page.explore("All layouts", {...});       // scatter with Pareto front, parallel coordinates, table, click for
//   details page.note("How to reproduce", {"Run this:"}, "k3sim sweep space.yaml --out out"); write_file_atomically(dir
//   + "/report.html", page.html()); and page.data() beside it as report_data.json.gz, from which `k3sim report DIR`
//   builds the page again.
// For the common case of one table see tools/report/table_report.h. Cells are text; a column that is not `text` holds
// decimal numbers, empty when missing. Source: product-spec section 2; engine-design section 18.
#pragma once

#include <string>
#include <vector>

namespace k3sim {

struct PageColumn {
  std::string key, title, unit, what;
  bool text = false;
};

struct PageTable {
  std::string id, caption, source;  // source: prediction, profile, scenario, measurement or a sentence
  std::vector<PageColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

struct PageFigure {
  std::string key, label, value, unit, source;  // key as in summary.json
};

struct PageAxis {
  std::string key;  // of a column
  bool larger_is_better = true;
};

struct PageExplorer {
  PageTable table;
  PageAxis x, y;                      // scatter; the Pareto front follows both directions
  std::vector<std::string> parallel;  // column keys of the parallel coordinates; at most 12
  std::string name_column;            // shown as the name of a row
};

class HtmlPage {
 public:
  HtmlPage(std::string title, std::string answer) : title_(std::move(title)), answer_(std::move(answer)) {}

  void figures(const std::string& heading, const std::vector<PageFigure>& figures);
  void table(const std::string& heading, const PageTable& table);
  void explore(const std::string& heading, const PageExplorer& explorer);
  void note(const std::string& heading, const std::vector<std::string>& paragraphs, const std::string& literal = "");
  // A section drawn by the function of that name in page/; `json` is an object.
  void section(const std::string& type, const std::string& heading, const std::string& json);

  std::string data() const;  // JSON: title, answer, version, sections
  std::string html() const { return html_of(data()); }
  static std::string html_of(const std::string& data);  // throws ConfigError when it is not the data of a page

 private:
  std::string title_, answer_;
  std::vector<std::string> sections_;
};

std::string html_escaped(std::string_view text);

}  // namespace k3sim
