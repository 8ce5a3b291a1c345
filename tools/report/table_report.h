// A whole report around one table of results: the answer, key figures, an explorer (sortable and filterable table,
// scatter with Pareto front, parallel coordinates, details on click) or a plain table, notes, how to reproduce.
// For sweep, plan, ablate, capacity, compare, validate, regress and diff:
//
//   TableReport r;
//   r.title = "Validation";  r.answer = "Median error 9.8 % over 512 published runs";
//   r.table = {.id = "cases", .caption = "Predicted against published", .source = "prediction and publications",
//              .columns = {{"id", "case", "", "name", true}, {"error_pct", "error", "%", "predicted / measured - 1"}},
//              .rows = {{"llama3_405b", "-3.2"}}};
//   r.x = {"measured", false};  r.y = {"predicted", false};     // optional: adds the explorer
//   r.command = "k3sim validate";
//   out.add("report.html", build_table_report(r).html());
// Source: product-spec section 2.
#pragma once

#include <string>
#include <vector>

#include "tools/report/csv.h"
#include "tools/report/html_page.h"

namespace k3sim {

struct TableReport {
  std::string title, answer;
  std::vector<PageFigure> figures;
  PageTable table;
  PageAxis x, y;                      // empty keys: a plain table
  std::vector<std::string> parallel;  // empty: chosen from the numeric columns
  std::string name_column;            // empty: the first column
  std::vector<PageTable> more;        // further tables, each with its caption as heading
  std::vector<std::string> notes;
  std::string command, scenario_text;
};

HtmlPage build_table_report(const TableReport& report);

// "s" of step_time_s; empty when the name says none.
std::string unit_of_name(const std::string& name);

// The report of a CSV file as k3sim wrote it: units and meanings come from `known` columns of that name, else units are
// read off the names (_s, _pct, _gib, _bytes ...); columns with text in any row are text. x and y default to step time
// and memory, MFU or cost, as far as they are there.
TableReport table_report_of_csv(const CsvData& csv, const std::string& title, const std::vector<CsvColumn>& known = {});

}  // namespace k3sim
