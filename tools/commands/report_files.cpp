#include "tools/commands/report_files.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/trace/gzip.h"

namespace k3sim {

namespace {

constexpr std::array kWithValue{"--out", "--threads", "--shard"};
constexpr std::array kFlags{"--merge", "--resume", "--json"};

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

void add_page(OutputFolder& out, const HtmlPage& page) {
  const std::string data = page.data();
  out.add("report_data.json.gz", gzip(data));
  out.add("report.html", HtmlPage::html_of(data));
}

void add_results(OutputFolder& out, const NamedTables& tables, const HtmlPage& page) {
  std::vector<CsvFile> files;
  for (const auto& [name, table] : tables) {
    out.add(name, table.text());
    files.push_back({name, table.columns()});
  }
  out.add("data_dictionary.csv", data_dictionary_csv(files));
  add_page(out, page);
}

std::string command_line(const std::vector<std::string>& arguments) {
  std::string out = "k3sim";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::string name = word.substr(0, word.find('='));
    if (std::find(kFlags.begin(), kFlags.end(), word) != kFlags.end()) continue;
    if (std::find(kWithValue.begin(), kWithValue.end(), name) != kWithValue.end()) {
      if (name == word) ++i;
      continue;
    }
    out += " " + quoted(word);
  }
  return out;
}

}  // namespace k3sim
