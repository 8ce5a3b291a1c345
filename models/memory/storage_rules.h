// What happens to one saved tensor between forward and backward, by name: "kda.*" -> offload. Treatments compose:
//   keep                     stays on the GPU as it is
//   recompute                dropped; its module's forward kernels run again in backward
//   fp8                      E4M3 in tiles of 128 values with FP32 scales, (1 + 4/128) bytes per element
//   offload                  waits in host memory, over PCIe both ways
//   remote_offload           waits in the memory of another pipeline rank, over the network both ways
//   fp8+offload, fp8+remote_offload
// The last rule whose pattern matches wins; '*' stands for any text, '?' for one character.
// Source: k3-facts 2.4 (unified activation manager: policies per tensor, composable, by annotation).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace k3sim {

enum class StoragePlace : std::uint8_t { gpu, host, remote };

struct TensorTreatment {
  bool recompute = false;
  bool fp8 = false;
  StoragePlace place = StoragePlace::gpu;
  bool leaves() const { return !recompute && place != StoragePlace::gpu; }
  bool operator==(const TensorTreatment&) const = default;
};

struct StorageRule {
  std::string match;
  TensorTreatment treatment;
};

bool name_matches(std::string_view pattern, std::string_view name);
const std::vector<std::string>& treatment_names();
// Throws ConfigError with a suggestion.
TensorTreatment parse_treatment(const std::string& text, const std::string& key);
const char* to_string(const TensorTreatment& t);

}  // namespace k3sim
