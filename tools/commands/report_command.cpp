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
#include "tools/report/table_report.h"

namespace k3sim {

namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError("cannot be read", path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string page_of(const fs::path& folder) {
  if (const fs::path data = folder / "report_data.json.gz"; fs::exists(data)) {
    try {
      return HtmlPage::html_of(gunzip(read_all(data)));
    } catch (const std::runtime_error& e) {
      throw ConfigError(e.what(), data.string());
    }
  }
  for (const char* name : {"sweep.csv", "plan.csv", "ablate.csv", "validate.csv", "ranks.csv"}) {
    const fs::path csv = folder / name;
    if (!fs::exists(csv)) continue;
    TableReport r = table_report_of_csv(parse_csv(read_all(csv), csv.string()), folder.filename().string());
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
  CLI::App* c = add_command(app, "report", "rebuild report.html of a result folder", "k3sim report out/k3");
  c->add_option("folder", *folder, "folder that run, sweep or plan wrote with --out")->required();
  c->callback([folder, &context] {
    const std::string path = (fs::path(*folder) / "report.html").string();
    if (!fs::is_directory(*folder)) throw ConfigError("is not a folder", *folder);
    write_file_atomically(path, page_of(fs::path(*folder).lexically_normal()));
    context.out << path << "\n";
  });
}

}  // namespace k3sim
