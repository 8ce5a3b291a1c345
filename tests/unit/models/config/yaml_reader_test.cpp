// The reader's promise: every mistake of a file at once, each with its line, column and key path.
#include "models/config/yaml_reader.h"

#include <doctest/doctest.h>

using namespace k3sim;

namespace {
std::string problems_of(const YamlDocument& doc) {
  try {
    doc.finish();
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "none";
}
}  // namespace

TEST_CASE("yaml: typed values are read and absent keys leave their defaults") {
  const YamlDocument doc =
      YamlDocument::parse("a: 3\nb: {c: 1.5, d: true, e: [1, 2], f: 80 GiB, g: 8192 tokens}\n", "f.yaml");
  int a = 0, absent = 7;
  double c = 0;
  bool d = false;
  std::vector<std::int64_t> e;
  std::optional<Bytes> f;
  std::int64_t g = 0;
  CHECK(doc.root().read("a", a));
  CHECK_FALSE(doc.root().read("z", absent));
  const YamlNode b = doc.root().child("b");
  b.read("c", c), b.read("d", d), b.read("e", e), b.read("f", f);
  b.child("g").to_count(g, "tokens");
  CHECK(a == 3);
  CHECK(absent == 7);
  CHECK(c == 1.5);
  CHECK(d);
  CHECK(e == std::vector<std::int64_t>{1, 2});
  CHECK(f == Bytes::gib(80));
  CHECK(g == 8192);
  CHECK(problems_of(doc) == "none");
}

TEST_CASE("yaml: all mistakes of a file are reported together, in file order, with line and column") {
  const YamlDocument doc = YamlDocument::parse("a: x\nb:\n  tpp: 3\n  bw: 450\na: 4\n", "f.yaml");
  int a = 0, tp = 0;
  Bandwidth bw;
  doc.root().child("b").read("bw", bw);
  doc.root().child("b").read("tp", tp);
  doc.root().require("a", a);
  doc.root().require("missing", a);
  CHECK(problems_of(doc) ==
        "error: f.yaml:1:1: missing: is missing\n"
        "error: f.yaml:1:4: a: needs a whole number, got 'x'\n"
        "error: f.yaml:3:3: b.tpp: unknown key (did you mean 'tp'?)\n"
        "error: f.yaml:4:7: b.bw: '450' has no unit; write for example '450 GB/s'\n"
        "error: f.yaml:5:1: a: duplicate key, first given in line 1");
}

TEST_CASE("yaml: a quoted number is text, and text is no number") {
  const YamlDocument doc = YamlDocument::parse("a: \"8\"\n", "f.yaml");
  int a = 0;
  CHECK_FALSE(doc.root().read("a", a));
  CHECK(problems_of(doc) == "error: f.yaml:1:4: a: needs a whole number, got the text \"8\"");
}

TEST_CASE("yaml: a section that is a number or empty is one problem, however many keys are asked of it") {
  const YamlDocument doc = YamlDocument::parse("p: 3\nq:\n", "f.yaml");
  int v = 0;
  doc.root().child("p").read("tp", v), doc.root().child("p").read("pp", v);
  doc.root().child("q").read("tp", v);
  CHECK(problems_of(doc) ==
        "error: f.yaml:1:4: p: needs a map of keys, got '3'\nerror: f.yaml:2:1: q: needs a map of keys, got nothing");
}

TEST_CASE("yaml: whole numbers do not accept fractions, overflow or a sign where none is meant") {
  const YamlDocument doc = YamlDocument::parse("a: 1.5\nb: 99999999999\nc: -1\n", "f.yaml");
  int i = 0;
  std::uint64_t u = 0;
  CHECK_FALSE(doc.root().read("a", i));
  CHECK_FALSE(doc.root().read("b", i));
  CHECK_FALSE(doc.root().read("c", u));
  CHECK(doc.problems().size() == 3);
}

TEST_CASE("yaml: syntax errors throw at once with their place") {
  try {
    YamlDocument::parse("a: [1, 2\nb: 3\n", "f.yaml");
    FAIL("must throw");
  } catch (const ConfigError& e) {
    CHECK(std::string(e.what()).starts_with("error: f.yaml:2:"));
  }
  CHECK_THROWS_AS(YamlDocument::load("no/such/file.yaml"), ConfigError);
  CHECK_THROWS_AS(YamlDocument::load("/"), ConfigError);
}

TEST_CASE("yaml: overrides replace, add and are blamed under their own name") {
  YamlDocument doc = YamlDocument::parse("p: {tp: 1}\nmodel: x\n", "f.yaml");
  doc.set("--set", "p.tp=8");
  doc.set("--set", "q.list=[1, 2]");
  doc.set("--set", "model.name=y");
  doc.set("--set", "novalue");
  int tp = 0;
  std::vector<int> list;
  doc.root().child("p").read("tp", tp);
  doc.root().child("q").read("list", list);
  doc.root().has("model");
  CHECK(tp == 8);
  CHECK(list == std::vector<int>{1, 2});
  CHECK(problems_of(doc) ==
        "error: --set: model.name: 'model' is 'x' and has no keys\n"
        "error: --set: 'novalue' is not of the form key.path=value");
}

TEST_CASE("yaml: an override with a wrong value points at --set and not at a line of the file") {
  YamlDocument doc = YamlDocument::parse("p: {tp: 1}\n", "f.yaml");
  doc.set("--set", "p.tp=eight");
  int tp = 1;
  doc.root().child("p").read("tp", tp);
  CHECK(problems_of(doc) == "error: --set: p.tp: needs a whole number, got 'eight'");
}

TEST_CASE("yaml: the text after overrides reads back as the same document") {
  YamlDocument doc = YamlDocument::parse("a: 3\nb: {c: [x, y], d: \"8\"}\ne:\n  - {k: 1}\n", "f.yaml");
  doc.set("--set", "b.f=true");
  const std::string once = doc.to_text();
  CHECK(YamlDocument::parse(once).to_text() == once);
  CHECK(once.find("f: true") != std::string::npos);
}

TEST_CASE("yaml: aliases share a value, cycles and tags are refused") {
  const YamlDocument doc = YamlDocument::parse("a: &x {k: 1}\nb: *x\n", "f.yaml");
  int k = 0;
  CHECK(doc.root().child("b").read("k", k));
  CHECK(k == 1);
  CHECK_THROWS_AS(YamlDocument::parse("a: &x [*x]\n"), ConfigError);
  CHECK(YamlDocument::parse("a: !!int 3\n").problems().size() == 1);
}

TEST_CASE("yaml: a few nested aliases that stand for billions of values are refused, not expanded") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += std::string(j ? ", " : "") + "*a" + std::to_string(i - 1);
    text += "]\n";
  }
  CHECK_THROWS_AS(YamlDocument::parse(text).to_text(), ConfigError);
}
