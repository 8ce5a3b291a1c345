// Pages: nothing a user wrote can break out of the data, numbers stay numbers, damaged data is refused.
#include "tools/report/html_page.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "tools/report/page_assets.h"
#include "tools/report/table_report.h"

using namespace k3sim;
using Json = nlohmann::json;

namespace {

PageTable small_table() {
  return {"t",
          "caption",
          "prediction",
          {{"name", "name", "", "", true}, {"step_time_s", "step", "s", ""}},
          {{"a", "1.50"}, {"12", ""}, {"c", "007"}}};
}

// What a browser would read between the data element's tags.
Json embedded(const std::string& html) {
  const std::string open = "id=\"data\">";
  const std::size_t from = html.find(open) + open.size();
  return Json::parse(html.substr(from, html.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("HtmlPage: text that looks like markup stays text") {
  HtmlPage page("<b>title</b>", "answer & </script><script>alert(1)</script>");
  page.note("heading", {"</script><!-- x"}, "a < b");
  const std::string html = page.html();
  CHECK(html.find("alert(1)</script>") == std::string::npos);
  CHECK(html.find("&lt;b&gt;title") != std::string::npos);
  CHECK(embedded(html).at("sections").at(0).at("data").at("paragraphs").at(0) == "</script><!-- x");
}

TEST_CASE("HtmlPage: numeric columns hold numbers, text columns text, missing cells null") {
  HtmlPage page("t", "a");
  page.table("h", small_table());
  const Json rows = Json::parse(page.data()).at("sections").at(0).at("data").at("rows");
  CHECK(rows.at(0).at(1) == 1.5);
  CHECK(rows.at(1).at(0) == "12");
  CHECK(rows.at(1).at(1).is_null());
  CHECK(rows.at(2).at(1) == "007");
}

TEST_CASE("HtmlPage: a number without unit or source is refused, wherever it stands") {
  HtmlPage page("t", "a");
  CHECK_NOTHROW(
      page.table("", {"t", "c", "prediction", {{"n", "count", "1", ""}, {"w", "word", "", "", true}}, {{"1", "x"}}}));
  CHECK_THROWS_AS(page.table("", {"t", "c", "prediction", {{"n", "count", "", ""}}, {{"1"}}}), InternalError);
  CHECK_THROWS_AS(page.table("", {"t", "c", "", {{"n", "count", "s", ""}}, {{"1"}}}), InternalError);
  CHECK_THROWS_AS(page.figures("", {{"k", "label", "1.5", "", "prediction"}}), InternalError);
  CHECK_THROWS_AS(page.figures("", {{"k", "label", "1.5", "s", ""}}), InternalError);
  CHECK_NOTHROW(page.figures("", {{"k", "label", "yes", "", "prediction"}}));
  CHECK_THROWS_AS(page.heat("", {{"h", "c", "prediction", "", "row", "column", {"r"}, {"c"}, {{1.0}}}}), InternalError);
  PageDeltas bars;
  bars.table = {"d", "c", "prediction", {}, {}};
  CHECK_THROWS_AS(page.deltas("", bars), InternalError);
}

TEST_CASE("HtmlPage: the page built again from its data is the same page") {
  HtmlPage page("t", "a");
  page.explore("h", {small_table(), {"step_time_s", false}, {"step_time_s", true}, {"step_time_s"}, "name"});
  CHECK(HtmlPage::html_of(page.data()) == page.html());
  CHECK_THROWS_AS(HtmlPage::html_of("{\"title\": 1"), ConfigError);
  CHECK_THROWS_AS(HtmlPage::html_of("[]"), ConfigError);
}

TEST_CASE("page_assets: style and scripts are in the program and do not leave the page") {
  const PageAssets a = page_assets();
  CHECK(a.style.find("prefers-color-scheme: dark") != a.style.npos);
  CHECK(a.style.find("@media print") != a.style.npos);
  CHECK(a.script.find("k3.draw.timeline") != a.script.npos);
  for (const char* outside : {"fetch(", "XMLHttpRequest", "import(", "https://"})
    CHECK(a.script.find(outside) == a.script.npos);
  CHECK(a.script.find("</script") == a.script.npos);
  CHECK(a.library.find("</script") == a.library.npos);
}

TEST_CASE("table_report_of_csv: units come from the names, axes from what is there") {
  const CsvData csv{{"id", "step_time_s", "peak_reserved_gib", "mfu_pct", "policy"},
                    {{"c1", "10", "70", "30", "full"}, {"c2", "12.5", "", "25", "1"}}};
  const TableReport r = table_report_of_csv(csv, "sweep");
  CHECK(r.table.columns[1].unit == "s");
  CHECK(r.table.columns[2].unit == "GiB");
  CHECK(r.table.columns[3].unit == "%");
  CHECK_FALSE(r.table.columns[2].text);
  CHECK(r.table.columns[4].text);
  CHECK(r.x.key == "step_time_s");
  CHECK(r.y.key == "peak_reserved_gib");
  CHECK(build_table_report(r).data().find("\"type\":\"explore\"") != std::string::npos);
}
