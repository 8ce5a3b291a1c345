// One self-contained HTML file: sections described as data, drawn by the scripts of tools/report/page/ that are inlined
// together with the data. Works offline; without a charting library at build time charts fall back to their tables.
//
//   HtmlPage page("Sweep of k3_2048_h800", "Best of 8,192 layouts: 12.4 s per step ...");   // title, the answer
//   page.figures("The answer", {{"step_time_s", "step time", "12.4", "s", "prediction"}});
//   page.table("Cost per GPU", {.id = "gpus", .caption = "...", .source = "profile", .columns = {...}, .rows = {...}});
//   page.explore("All layouts", {...});       // scatter with Pareto front, parallel coordinates, table, click for
//   details page.deltas("What it buys", {...});       // bars of gains and losses around zero, or as a waterfall
//   page.lines("Cost", {...}); page.heat("Load", {...});      // curves over a number; a grid of values
//   page.note("How to reproduce", {"Run this:"}, "k3sim sweep space.yaml --out out");
//   page.html() becomes report.html, page.data() report_data.json.gz beside it, from which `k3sim report DIR` builds
//   the page again.
// For the common case of one table see tools/report/table_report.h. Cells are text; a column that is not `text` holds
// decimal numbers, empty when missing. Every number has a unit and a source (prediction, profile, scenario,
// measurement ...): a section without them is refused. Source: product-spec section 2; engine-design section 18.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/report/csv.h"

namespace k3sim {

// Unit of a number: "1" for counts and ratios, "mixed" where the row's column `unit` says it.
struct PageColumn {
  std::string key, title, unit, what;
  bool text = false;
  bool bar = false;         // a bar behind the number shows its size
  std::string source = "";  // empty: that of the table
};

struct PageTable {
  std::string id, caption, source;  // source: prediction, profile, scenario, measurement or a sentence
  std::vector<PageColumn> columns;
  std::vector<std::vector<std::string>> rows;
  bool folded = false;  // shown after a click on its caption
};
// The same columns and cells as the CSV file, under titles for people.
PageTable page_table(const std::string& id, const std::string& caption, const std::string& source,
                     const CsvTable& table);
PageColumn page_column(const CsvColumn& column);

struct PageFigure {
  std::string key, label, value, unit, source;  // key as in summary.json
};

struct PageAxis {
  std::string key;  // of a column
  bool larger_is_better = true;
  bool log = false;  // logarithmic scale
};

struct PageExplorer {
  PageTable table;
  PageAxis x, y;                      // scatter; the Pareto front follows both directions
  std::vector<std::string> parallel;  // column keys of the parallel coordinates; at most 12
  std::string name_column;            // shown as the name of a row
  std::string sort = "";              // column that orders the table at first, smallest first; empty: as given
  // The command that runs a chosen row alone: `command`, then for every key of `settings` --set KEY=CELL, or for the
  // values of keys in `assignments` what stands there instead.
  std::string command = "";
  bool front = true;  // false: no direction is better, no Pareto front
  std::vector<std::string> settings = {};
  std::map<std::string, std::map<std::string, std::vector<std::string>>> assignments = {};
};

struct PageDelta {
  std::string label;
  double value = 0, second = 0;  // second: another bar of the same row, when the section names it
};

struct PageDeltas {
  PageTable table;  // the same numbers and more, below the bars; without columns only its caption and source
  std::string unit;
  std::vector<PageDelta> rows;
  std::string first = "change", second = "";  // legend; second empty: one bar per row
  bool waterfall = false;                     // bars follow each other from `from`
  double from = 0;
  bool larger_is_better = false;
  std::string less = "better", more = "worse";  // what blue and orange bars say
};

struct PageLines {
  PageTable table;
  std::string x;               // column key
  std::vector<std::string> y;  // column keys, a chart each
  double mark = 0;             // x of the answer; 0: none
};

struct PageHeat {
  std::string id, caption, source, unit, row_title, column_title;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;  // [row][column]; NaN: nothing there
  double most = 0;                          // value of the strongest colour; 0: the largest
  double least = 0;                         // of the weakest; NaN: the smallest
};

class HtmlPage {
 public:
  HtmlPage(std::string title, std::string answer) : title_(std::move(title)), answer_(std::move(answer)) {}

  // An empty heading continues the section before.
  void figures(const std::string& heading, const std::vector<PageFigure>& figures);
  void table(const std::string& heading, const PageTable& table);
  void explore(const std::string& heading, const PageExplorer& explorer);
  void deltas(const std::string& heading, const PageDeltas& deltas);
  void lines(const std::string& heading, const PageLines& lines);
  void heat(const std::string& heading, const std::vector<PageHeat>& grids);
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
