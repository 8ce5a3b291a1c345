// The files that every command with --out writes beside its own: CSV tables with their data dictionary, the page of the
// report and the data from which `k3sim report` builds it again. Source: product-spec section 2.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/commands/output_files.h"
#include "tools/report/html_page.h"

namespace k3sim {

using NamedTables = std::vector<std::pair<std::string, CsvTable>>;  // file name, table

// report.html and report_data.json.gz.
void add_page(OutputFolder& out, const HtmlPage& page);
// The tables, data_dictionary.csv and the page.
void add_results(OutputFolder& out, const NamedTables& tables, const HtmlPage& page);

// The command as it was typed, without what changes no result: --out, --threads, --shard, --merge, --resume, --json.
std::string command_line(const std::vector<std::string>& arguments);

}  // namespace k3sim
