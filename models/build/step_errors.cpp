// Reads hardware_profiles/step_errors.yaml once. Source: step_errors.h.
#include "models/build/step_errors.h"

#include "models/config/data_files.h"
#include "models/config/model_kinds.h"
#include "models/config/yaml_reader.h"

namespace k3sim {

namespace {

struct BothKinds {
  StepErrors dense, moe;
};

StepErrors read(const YamlNode& node) {
  StepErrors e;
  node.require("low95", e.low95);
  node.require("low80", e.low80);
  node.require("high80", e.high80);
  node.require("high95", e.high95);
  node.require("runs", e.runs);
  if (!(0 < e.low95 && e.low95 <= e.low80 && e.low80 < e.high80 && e.high80 <= e.high95))
    node.problem("bounds must be positive and rise from low95 to high95");
  return e;
}

BothKinds load() {
  const YamlDocument doc = YamlDocument::load(data_path("hardware_profiles/step_errors.yaml"));
  BothKinds both{read(doc.root().child("dense")), read(doc.root().child("moe"))};
  std::string ignored;
  for (const char* note : {"date", "source"}) doc.root().read(note, ignored);
  doc.finish();
  return both;
}

}  // namespace

const StepErrors& step_errors(const ModelSpec& model) {
  static const BothKinds both = load();
  return has_routed_experts(model) ? both.moe : both.dense;
}

}  // namespace k3sim
