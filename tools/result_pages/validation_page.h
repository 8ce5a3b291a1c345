// The report of `validate`: every case measured and predicted, errors by group, and how the errors are spread.
// Source: product-spec sections 2, 6 and 7.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/html_page.h"
#include "tools/validation/collective_validation.h"
#include "tools/validation/model_validation.h"
#include "tools/validation/published_validation.h"

namespace k3sim {

struct ValidationPageInput {
  std::string what;                          // "Training runs"
  std::vector<const ValidationRow*> rows;    // all
  std::vector<const ValidationRow*> scored;  // those that the answer counts
  std::vector<std::string> notes;
  std::string command;
  std::optional<ErrorSummary> summary = {};  // of kinds that count in their own way; else of `scored`
  std::vector<PageTable> more = {};          // after the groups, each with its caption as heading
};

CsvTable validation_table(const std::vector<const ValidationRow*>& rows);
HtmlPage validation_page(const ValidationPageInput& input);

// Other kinds of comparison as rows of the same form.
ValidationRow validation_row(const PublishedPrediction& kernel);
ValidationRow validation_row(const CollectiveRow& collective);

}  // namespace k3sim
