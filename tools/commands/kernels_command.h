// k3sim kernels: predicted kernel times of a GPU, beside measured ones. Source: product-spec sections 2 and 7.
#pragma once

#include <iosfwd>
#include <string>

namespace k3sim {

struct KernelsCommandOptions {
  std::string gpu;       // profile name or file
  std::string measured;  // measurement file; empty: usual kernels, predicted only
  std::string against;   // second measurement file: how far do the two agree? No prediction then
  std::string csv;       // also write the rows here
  bool cross_validate = false;
  bool rows = false;  // print every row, not only the families
  bool json = false;
};

int run_kernels_command(const KernelsCommandOptions& options, std::ostream& out);

}  // namespace k3sim
