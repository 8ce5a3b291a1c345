// Source: yaml-cpp 0.7 event interface (YAML::Parser::HandleNextDocument).
#include "models/config/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

namespace k3sim {

const YamlValue::Entry* YamlValue::find(std::string_view key) const {
  for (const Entry& e : entries)
    if (e.key == key) return &e;
  return nullptr;
}

namespace {

void add_problem(std::vector<Problem>& problems, Place place, std::string key, std::string what) {
  Problem& p = problems.emplace_back();
  p.place = std::move(place);
  p.key = std::move(key);
  p.what = std::move(what);
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, std::vector<Problem>& problems) : file_(std::move(file)), problems_(problems) {}
  std::shared_ptr<YamlValue> root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(mark, anchor)); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    for (const Open& open : open_)
      if (known != anchors_.end() && open.value == known->second)
        throw ConfigError("an alias cannot contain itself", {}, place(mark));
    add(known == anchors_.end() ? make(mark, 0) : known->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (tag != "?" && tag != "!" && !tag.empty())
      add_problem(problems_, place(mark), {}, fmt::format("tags are not supported, got '{}'", tag));
    std::shared_ptr<YamlValue> value = make(mark, anchor);
    value->kind = YamlValue::Kind::scalar;
    value->text = text;
    value->quoted = tag == "!";
    add(value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlValue::Kind::list, mark, anchor);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlValue::Kind::map, mark, anchor);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Open {
    std::shared_ptr<YamlValue> value;
    bool has_key = false;
    bool drop = false;  // the value of a duplicate key
    std::string key;
    Place key_place;
  };

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  std::shared_ptr<YamlValue> make(const YAML::Mark& mark, YAML::anchor_t anchor) {
    auto value = std::make_shared<YamlValue>();
    value->place = place(mark);
    if (anchor != 0) anchors_[anchor] = value;
    return value;
  }

  void open(YamlValue::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    std::shared_ptr<YamlValue> value = make(mark, anchor);
    value->kind = kind;
    add(value);
    Open level;
    level.value = std::move(value);
    open_.push_back(std::move(level));
  }

  void add(const std::shared_ptr<YamlValue>& value) {
    if (open_.empty()) {
      root_ = value;
      return;
    }
    Open& top = open_.back();
    if (top.value->kind == YamlValue::Kind::list) {
      top.value->items.push_back(value);
    } else if (!top.has_key) {
      take_key(top, *value);
    } else {
      // yaml-cpp marks a missing value where the next token starts, often a line below its key.
      if (value->kind == YamlValue::Kind::null) value->place = top.key_place;
      if (!top.drop) top.value->entries.push_back({top.key, top.key_place, value});
      top.has_key = false;
    }
  }

  void take_key(Open& top, const YamlValue& key) {
    if (key.kind != YamlValue::Kind::scalar) throw ConfigError("a key must be a plain word", {}, key.place);
    const YamlValue::Entry* first = top.value->find(key.text);
    if (first)
      add_problem(problems_, key.place, path_to(key.text),
                  fmt::format("duplicate key, first given in line {}", first->place.line));
    top.has_key = true;
    top.drop = first != nullptr;
    top.key = key.text;
    top.key_place = key.place;
  }

  std::string path_to(const std::string& key) const {
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const Open& level = open_[i];
      if (level.value->kind == YamlValue::Kind::list)
        path += fmt::format("[{}]", level.value->items.size() - 1);
      else
        path += (path.empty() ? "" : ".") + level.key;
    }
    return path.empty() ? key : path + "." + key;
  }

  std::string file_;
  std::vector<Problem>& problems_;
  std::shared_ptr<YamlValue> root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::shared_ptr<YamlValue>> anchors_;
};

bool is_short(const YamlValue& value) {
  std::size_t width = 0;
  for (const YamlValue::Entry& e : value.entries) {
    if (e.value->kind == YamlValue::Kind::map || e.value->kind == YamlValue::Kind::list) return false;
    width += e.key.size() + e.value->text.size() + 4;
  }
  for (const auto& item : value.items) {
    if (item->kind == YamlValue::Kind::map || item->kind == YamlValue::Kind::list) return false;
    width += item->text.size() + 2;
  }
  return width <= 100;
}

void emit(YAML::Emitter& out, const YamlValue& value, std::size_t& left) {
  // Aliases are written out in full; the bound stops a few nested aliases from becoming gigabytes.
  if (left == 0) throw ConfigError("the document has too many values after its aliases are expanded", {}, value.place);
  --left;
  switch (value.kind) {
    case YamlValue::Kind::null:
      out << YAML::Null;
      break;
    case YamlValue::Kind::scalar:
      if (value.quoted) out << YAML::DoubleQuoted;
      out << value.text;
      break;
    case YamlValue::Kind::list:
      if (is_short(value)) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const auto& item : value.items) emit(out, *item, left);
      out << YAML::EndSeq;
      break;
    case YamlValue::Kind::map:
      if (is_short(value)) out << YAML::Flow;
      out << YAML::BeginMap;
      for (const YamlValue::Entry& e : value.entries) {
        out << YAML::Key << e.key << YAML::Value;
        emit(out, *e.value, left);
      }
      out << YAML::EndMap;
      break;
  }
}

class NullHandler final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

}  // namespace

std::shared_ptr<YamlValue> parse_yaml_tree(const std::string& text, const std::string& file,
                                           std::vector<Problem>& problems) {
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    TreeBuilder builder(file, problems);
    parser.HandleNextDocument(builder);
    NullHandler rest;
    if (parser.HandleNextDocument(rest)) add_problem(problems, {file, 0, 0}, {}, "has more than one YAML document");
    std::shared_ptr<YamlValue> root = builder.root();
    if (!root) root = std::make_shared<YamlValue>(), root->place.file = file;
    return root;
  } catch (const YAML::Exception& e) {
    throw ConfigError("not valid YAML: " + e.msg, {}, {file, e.mark.line + 1, e.mark.column + 1});
  }
}

std::string write_yaml_tree(const YamlValue& root) {
  YAML::Emitter out;
  std::size_t left = 1'000'000;
  emit(out, root, left);
  return std::string(out.c_str()) + "\n";
}

}  // namespace k3sim
