#include "tools/validation/stack_validation.h"

#include <fmt/format.h>

#include "models/build/machine_loader.h"
#include "models/config/model_loader.h"
#include "models/memory/module_log.h"
#include "models/transformer/modules.h"
#include "sim/base/error.h"
#include "sim/mem/emulate.h"
#include "tools/validation/eager_timeline.h"
#include "tools/validation/simple_csv.h"

namespace k3sim {

namespace {

constexpr const char* kGpu = "h200_sxm";

struct Part {
  std::vector<std::string> chain;
  ModuleOptions options;
  bool compiled = false;
};

Part part_of(const CsvRow& row) {
  const std::string& name = row.text("part");
  if (name == "3kda+1mla") return {{"kda_block", "kda_block", "kda_block", "mla_block"}, {}, false};
  if (name.rfind("attnres_mix_", 0) == 0) {
    Part p{{"attnres_mix"}, {}, true};
    p.options.sources = std::atoi(name.c_str() + 12);
    return p;
  }
  for (const std::string& known : known_modules())
    if (known == name) return {{name}, {}, false};
  throw ConfigError("unknown module '" + name + "'", "part", {row.file, row.line, 0});
}

class StackPredictor {
 public:
  StackPredictor() : model_(load_model("kimi_k3")) {
    Scenario s;
    s.cluster.gpu = kGpu;
    s.software = "pytorch_eager";
    machine_ = load_machine(s);
  }

  double seconds(const Part& part, bool forward, std::int64_t tokens) const {
    EagerTimeline t(*machine_.cost, machine_.software.host_launch);
    for (const std::string& name : part.chain) {
      const LayerProgram p = module_program(model_, name, tokens, part.options);
      t.run(forward ? p.forward : p.backward);
    }
    return t.now().seconds();
  }

  double reserved_bytes(const Part& part, const CsvRow& row, std::int64_t tokens) const {
    const Bytes base = Bytes::ceil(key_value(row.text("note"), "base", 0));
    const RequestLog log =
        module_log(model_, {.modules = part.chain, .tokens = tokens, .options = part.options, .base = base});
    return emulate(log).peak_reserved().as_double();
  }

  double peak_bytes(const Part& part, const CsvRow& row, std::int64_t tokens) const {
    const double base = key_value(row.text("note"), "base", -1);
    if (base < 0) throw ConfigError("no 'base=' bytes", "note", {row.file, row.line, 0});
    return base + chain_peak_growth(model_, part.chain, tokens, part.options).as_double();
  }

 private:
  ModelSpec model_;
  Machine machine_;
};

}  // namespace

std::vector<ValidationRow> validate_stack(const std::string& csv_path) {
  const StackPredictor predictor;
  std::vector<ValidationRow> rows;
  for (const CsvRow& csv : read_simple_csv(csv_path)) {
    const Part part = part_of(csv);
    const auto tokens = static_cast<std::int64_t>(csv.number("tokens"));
    const bool forward = csv.text("pass") == "fwd";
    ValidationRow r;
    r.id = fmt::format("{}-{}-{}", csv.text("part"), csv.text("pass"), tokens);
    r.group = r.family = csv.text("part");
    r.tier = "A";
    r.kind = "stack";
    r.gpu = kGpu;
    r.status = "predicted";
    r.metric = "time_us";
    r.measured = csv.number("median_us");
    r.predicted = predictor.seconds(part, forward, tokens) * 1e6;
    rows.push_back(r);
    if (!forward || csv.text("peak_alloc_bytes").empty()) continue;
    r.kind = "memory";
    r.metric = "peak_allocated_bytes";
    r.measured = csv.number("peak_alloc_bytes");
    r.predicted = predictor.peak_bytes(part, csv, tokens);
    rows.push_back(r);
    if (csv.text("peak_reserved_bytes").empty()) continue;
    r.metric = "peak_reserved_bytes";
    r.measured = csv.number("peak_reserved_bytes");
    r.predicted = predictor.reserved_bytes(part, csv, tokens);
    rows.push_back(r);
  }
  return rows;
}

}  // namespace k3sim
