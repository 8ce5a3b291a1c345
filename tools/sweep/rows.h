// Rows of sweep.csv: id, status, reason, the value of every axis, then the columns of a prediction. A row is a pure
// function of its configuration, so that the file has the same bytes for any number of threads, shards or ranks.
// Source: product-spec sections 3 and 4.
#pragma once

#include <cstdint>
#include <string>

#include "tools/planner/evaluate.h"

namespace k3sim {

class RowMaker {
 public:
  RowMaker(const SearchSpace& space, const EvaluateOptions& options) : space_(space), options_(options) {}
  std::vector<CsvColumn> columns() const;
  std::string header() const;           // ends with CRLF
  std::string row(std::int64_t index);  // thread-safe; ends with CRLF
  const SearchSpace& space() const { return space_; }
  // Tells rows of this space and these options from others.
  std::string digest() const;

 private:
  const SearchSpace& space_;
  EvaluateOptions options_;
  MachineStore machines_;
};

}  // namespace k3sim
