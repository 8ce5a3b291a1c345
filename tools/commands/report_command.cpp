// k3sim report: builds report.html of a result folder again, from report_data.json.gz or from its CSV table.
// Source: product-spec section 2.
#include <CLI/App.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>
#include <stdexcept>

#include "sim/base/error.h"
#include "sim/trace/gzip.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/planner/evaluate.h"
#include "tools/report/table_report.h"

namespace k3sim {

namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError("cannot be read", path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

// What the folder's data dictionary says of a file, else the columns that every prediction has.
std::vector<CsvColumn> known_columns(const fs::path& folder, const std::string& file) {
  std::vector<CsvColumn> out = summary_columns();
  const fs::path path = folder / "data_dictionary.csv";
  if (!fs::exists(path)) return out;
  const CsvData words = parse_csv(read_all(path), path.string());
  if (words.header != std::vector<std::string>{"file", "column", "unit", "source", "meaning"}) return out;
  for (const auto& row : words.rows)
    if (row[0] == file) out.push_back({row[1], row[2], row[4], row[3]});
  return out;
}

std::string page_of(const fs::path& folder, bool from_csv) {
  if (const fs::path data = folder / "report_data.json.gz"; !from_csv && fs::exists(data)) {
    try {
      return HtmlPage::html_of(gunzip(read_all(data)));
    } catch (const std::runtime_error& e) {
      throw ConfigError(e.what(), data.string());
    }
  }
  for (const char* name : {"sweep.csv", "plan.csv", "ablation.csv", "validation.csv", "ranks.csv"}) {
    const fs::path csv = folder / name;
    if (!fs::exists(csv)) continue;
    TableReport r = table_report_of_csv(parse_csv(read_all(csv), csv.string()), folder.filename().string(),
                                        known_columns(folder, name));
    r.answer = r.table.caption + " of " + name;
    r.command = "k3sim report " + folder.string();
    return build_table_report(r).html();
  }
  throw ConfigError("no report_data.json.gz, sweep.csv or plan.csv here: not a folder that k3sim wrote",
                    folder.string());
}

}  // namespace

void add_report_command(CLI::App& app, CommandContext& context) {
  auto folder = std::make_shared<std::string>();
  auto from_csv = std::make_shared<bool>(false);
  CLI::App* c = add_command(app, "report", "rebuild report.html of a result folder", "k3sim report out/k3");
  c->add_option("folder", *folder, "folder that a command wrote with --out")->required();
  c->add_flag("--from-csv", *from_csv,
              "from the CSV table and its data dictionary, also when report_data.json.gz is there");
  c->callback([folder, from_csv, &context] {
    const std::string path = (fs::path(*folder) / "report.html").string();
    if (!fs::is_directory(*folder)) throw ConfigError("is not a folder", *folder);
    write_file_atomically(path, page_of(fs::path(*folder).lexically_normal(), *from_csv));
    context.out << path << "\n";
  });
}

}  // namespace k3sim
