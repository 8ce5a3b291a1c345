// The report of a sweep: the best configuration, what became of the others, all rows to explore.
// Source: product-spec section 2; engine-design section 18.
#pragma once

#include <string>

#include "models/config/space.h"
#include "tools/report/html_page.h"

namespace k3sim {

// `columns` are those of RowMaker, `csv` the rows of sweep.csv.
HtmlPage sweep_page(const SearchSpace& space, const std::vector<CsvColumn>& columns, const CsvData& csv,
                    const std::string& command);

}  // namespace k3sim
