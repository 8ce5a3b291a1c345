// Files -> LaunchArguments: shell scripts and command lines, and three YAML forms.
// Source: Megatron-LM tests/functional_tests (MODEL_ARGS), Megatron-MoE-ModelZoo (MODEL_ARGS with ${VARIABLES}),
// NeMo-Framework-Launcher conf/training (trainer, model), Megatron-Bridge ConfigContainer (model, train, ddp, ...).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>

#include "models/config/yaml_tree.h"
#include "sim/base/error.h"
#include "tools/import/launch_arguments.h"
#include "tools/import/shell_script.h"

namespace k3sim {
namespace {

using Environment = std::map<std::string, std::string>;

std::optional<std::int64_t> whole(const std::string& text) {
  const bool digits = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::optional<std::int64_t>(std::stoll(text)) : std::nullopt;
}

bool is_option(const std::string& word) {
  return word.size() > 2 && word.compare(0, 2, "--") == 0 && std::isalpha(static_cast<unsigned char>(word[2]));
}

void take_launcher(LaunchArguments& out, const LaunchArgument& a) {
  if (a.values.empty() || !a.unknown.empty()) return;
  std::string name = a.name;
  std::replace(name.begin(), name.end(), '_', '-');
  const std::optional<std::int64_t> value = whole(a.values.front().substr(0, a.values.front().find(':')));
  if (!value) return;
  if (name == "nnodes" || name == "num-nodes" || name == "nodes") out.nodes = value;
  if (name == "nproc-per-node" || name == "num-gpus" || name == "gpus-per-node" || name == "ntasks-per-node")
    out.gpus_per_node = value;
}

// "--name=value", "--name v1 v2"; a word that only quotes more words ("bash -c '...'") is split again.
void take_words(LaunchArguments& out, const std::vector<ShellWord>& words, const Environment& variables) {
  std::optional<LaunchArgument> open;
  const auto close = [&] {
    if (!open) return;
    take_launcher(out, *open);
    out.add(std::move(*open));
    open.reset();
  };
  for (const ShellWord& w : words) {
    const bool script = w.text.find('$') != std::string::npos && w.text.find(' ') != std::string::npos;
    if (script || w.text.find(" --") != std::string::npos) {
      close();
      const ShellScript inner = read_shell_script(w.text, variables);
      for (const auto& command : inner.commands) take_words(out, command, variables);
    } else if (is_option(w.text)) {
      close();
      const std::size_t equals = w.text.find('=');
      open = LaunchArgument{w.text.substr(2, equals == std::string::npos ? equals : equals - 2), {}, w.line, {}, false};
      if (equals != std::string::npos) open->values.push_back(w.text.substr(equals + 1));
      if (!w.unknown.empty()) open->unknown = w.unknown;
    } else if (open) {
      open->values.push_back(w.text);
      open->unknown.insert(open->unknown.end(), w.unknown.begin(), w.unknown.end());
    }
  }
  close();
}

bool starts_training(const std::vector<ShellWord>& command) {
  if (!command.empty() && (command[0].text == "echo" || command[0].text == "mkdir")) return false;
  return std::any_of(command.begin(), command.end(), [](const ShellWord& w) {
    return w.text.find("layers") != std::string::npos || w.text.find("hidden-size") != std::string::npos ||
           w.text.find("$CMD") != std::string::npos || w.text.find("pretrain_") != std::string::npos ||
           w.text.find("parallel-size") != std::string::npos;
  });
}

void take_batch_lines(LaunchArguments& out, const ShellScript& script) {
  for (const std::string& line : script.batch) {
    std::smatch match;
    if (std::regex_search(line, match, std::regex("(--nodes[= ]|-N ?)(\\d+)"))) out.nodes = whole(match[2]);
    if (std::regex_search(line, match, std::regex("--(gres=gpu|gpus-per-node)[:=](\\w+:)?(\\d+)")))
      out.gpus_per_node = whole(match[3]);
  }
}

void take_variables(LaunchArguments& out, const ShellScript& script) {
  const auto value = [&](std::initializer_list<const char*> names) -> std::optional<std::int64_t> {
    for (const char* name : names)
      if (const auto it = script.variables.find(name); it != script.variables.end() && it->second.size() == 1)
        if (const auto number = whole(it->second.front().text)) return number;
    return std::nullopt;
  };
  if (!out.nodes) out.nodes = value({"NNODES", "NUM_NODES", "NODES", "N_NODES"});
  if (!out.gpus_per_node) out.gpus_per_node = value({"GPUS_PER_NODE", "NPROC_PER_NODE", "GPN"});
  if (out.nodes) return;
  const std::optional<std::int64_t> gpus = value({"NUM_GPUS", "WORLD_SIZE"});
  if (!gpus) return;
  out.gpus_per_node = std::min<std::int64_t>(out.gpus_per_node.value_or(8), *gpus);
  out.nodes = std::max<std::int64_t>(1, *gpus / *out.gpus_per_node);
}

// DeepSpeed's JSON configuration, written by the script itself.
void take_documents(LaunchArguments& out, const ShellScript& script) {
  for (const std::string& body : script.documents) {
    std::smatch match;
    if (std::regex_search(body, match, std::regex("\"zero_optimization\"[^}]*\"stage\" *: *(\\d)")))
      out.add({"zero-stage", {match[1]}, 0, {}, false});
  }
}

void read_shell(LaunchArguments& out, const std::string& text, const Environment& environment) {
  const ShellScript script = read_shell_script(text, environment);
  take_batch_lines(out, script);
  take_documents(out, script);
  Environment variables;  // for words that hold a command themselves
  for (const auto& [name, words] : script.variables)
    for (const ShellWord& w : words) variables[name] += w.text + " ";
  bool found = false;
  for (const std::vector<ShellWord>& command : script.commands) {
    if (!starts_training(command)) continue;
    found = true;
    take_words(out, command, variables);
  }
  if (!found)  // a file of variables that another script sources
    for (const auto& [name, words] : script.variables) take_words(out, words, variables);
  take_variables(out, script);
  const bool deepspeed = std::any_of(out.all().begin(), out.all().end(), [](const LaunchArgument& a) {
    return a.name.rfind("deepspeed", 0) == 0 || a.name == "zero-stage";
  });
  if (deepspeed) out.origin = "deepspeed";
}

// --- YAML ---

// ${TP}, ${TP:-2}: the zoo's recipes leave the layout to the launcher.
void expand_variables(const std::string& raw, const Environment& environment, LaunchArgument& a) {
  std::string text = raw;
  if (text.find("${multiply:") != std::string::npos || text.find("${divide:") != std::string::npos) text.clear();
  std::smatch match;
  while (std::regex_search(text, match, std::regex("\\$\\{([A-Za-z_][A-Za-z_0-9]*)(:-([^}]*))?\\}"))) {
    const auto it = environment.find(match[1]);
    if (it == environment.end() && !match[2].matched) a.unknown.push_back(match[1]);
    text = match.prefix().str() + (it != environment.end() ? it->second : match[3].str()) + match.suffix().str();
  }
  a.values.push_back(text);
}

void take_value(LaunchArguments& out, std::string name, const YamlValue& value, int line,
                const Environment& environment) {
  if (name.rfind("--", 0) == 0) name = name.substr(2);
  LaunchArgument a{name, {}, line, {}, false};
  if (value.kind == YamlValue::Kind::map) return;
  for (const auto& item : value.items) expand_variables(item->text, environment, a);
  if (value.kind == YamlValue::Kind::scalar) expand_variables(value.text, environment, a);
  if (value.kind == YamlValue::Kind::null) a.values.emplace_back();
  out.add(std::move(a));
}

void take_section(LaunchArguments& out, const YamlValue* section, const Environment& environment) {
  if (!section) return;
  for (const YamlValue::Entry& e : section->entries)
    if (e.key != "_target_" && e.key != "name") take_value(out, e.key, *e.value, e.place.line, environment);
}

const YamlValue* child(const YamlValue& parent, const char* key) {
  const YamlValue::Entry* e = parent.find(key);
  return e && e->value->kind == YamlValue::Kind::map ? e->value.get() : nullptr;
}

std::optional<std::int64_t> number_of(const YamlValue* section, const char* key) {
  const YamlValue::Entry* e = section ? section->find(key) : nullptr;
  return e ? whole(e->value->text) : std::nullopt;
}

// Names that only these recipes use, as Megatron-LM spells them.
void take_recipe(LaunchArguments& out, const YamlValue& root, const Environment& environment) {
  const YamlValue* model = child(root, "model");
  for (const char* section :
       {"dist", "dataset", "model", "train", "optimizer", "ddp", "mixed_precision", "comm_overlap"})
    take_section(out, child(root, section), environment);  // later sections win, as they are applied to the model
  if (model) {
    take_section(out, child(*model, "data"), environment);
    if (const YamlValue* optimizer = child(*model, "optim")) {
      if (const YamlValue::Entry* name = optimizer->find("name")) {
        out.add({"optimizer", {"adam"}, name->place.line, {}, false});
        if (name->value->text.find("distributed") != std::string::npos)
          out.add({"use-distributed-optimizer", {}, name->place.line, {}, false});
      }
      take_section(out, optimizer, environment);
    }
  }
  const YamlValue* trainer = child(root, "trainer");
  take_section(out, trainer, environment);
  out.nodes = number_of(trainer, "num_nodes");
  out.gpus_per_node = number_of(trainer, "devices");
}

bool looks_like_yaml(const std::string& text) {
  static const std::regex kYaml("(^|\\n)(MODEL_ARGS|model|trainer|_target_):[ \\t]*(\\n|megatron)");
  return std::regex_search(text, kYaml);
}

void read_recipe_yaml(LaunchArguments& out, const std::string& text, const Environment& environment) {
  std::vector<Problem> problems;  // duplicate keys: the first one counts, as these tools do not care either
  const std::shared_ptr<YamlValue> root = parse_yaml_tree(text, out.file, problems);
  if (const YamlValue* arguments = child(*root, "MODEL_ARGS")) {
    for (const YamlValue::Entry& e : arguments->entries) {
      if (e.value->text == "false" && !e.value->quoted) continue;
      take_value(out, e.key, *e.value, e.place.line, environment);
    }
  } else if (const YamlValue* training = child(*root, "training")) {
    out.origin = "nemo";
    take_recipe(out, *training, environment);
  } else {
    out.origin = child(*root, "trainer") ? "nemo" : "bridge";
    take_recipe(out, *root, environment);
  }
}

}  // namespace

LaunchArguments read_launch(const std::string& text, const std::string& file, const Environment& environment) {
  LaunchArguments out;
  out.file = file;
  if (looks_like_yaml(text))
    read_recipe_yaml(out, text, environment);
  else
    read_shell(out, text, environment);
  if (out.all().empty()) throw ConfigError("no launch arguments found", {}, Place{file, 0, 0});
  for (const auto& [name, value] : environment) {
    if (name == "NNODES" && whole(value)) out.nodes = whole(value);
    if (name == "GPUS_PER_NODE" && whole(value)) out.gpus_per_node = whole(value);
  }
  return out;
}

}  // namespace k3sim
