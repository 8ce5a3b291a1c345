// Whatever is done to a scenario's text, loading it ends in a scenario or in a ConfigError with messages: never in a
// crash, another exception or an endless loop. Mutations are drawn from a fixed sequence, so that a failure repeats.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "models/config/scenario_loader.h"
#include "models/config/yaml_reader.h"
#include "sim/base/rng.h"

using namespace k3sim;

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : key_{seed, 0, 0} {}
  std::size_t below(std::size_t n) { return random_below(key_, next_++, n); }

 private:
  RandomKey key_;
  std::uint64_t next_ = 0;
};

std::string k3_text() {
  std::ifstream in(K3SIM_SOURCE_DIR "/scenarios/k3_2048_h800/scenario.yaml");
  return {std::istreambuf_iterator<char>(in), {}};
}

// Replaces, removes, repeats or inserts a piece; pieces are what YAML and our values are made of.
std::string mutate(std::string text, Draw& draw) {
  static const char* const kPieces[] = {"{",         "}",     "[",   "]",     ":",     ",",    "\n",
                                        "  ",        "\"",    "&a ", "*a",    "- ",    "!!x ", "|",
                                        "null",      "true",  "-1",  "0",     "1e999", "nan",  "9223372036854775807",
                                        "GiB",       "tp",    "%",   "---\n", "\t",    "\xff", "#",
                                        "[1, 2, 3]", "{a: b}"};
  const std::size_t at = draw.below(text.size());
  const std::size_t length = 1 + draw.below(12);
  switch (draw.below(4)) {
    case 0:
      return text.erase(at, length);
    case 1:
      return text.insert(at, text.substr(at, length));
    case 2:
      return text.insert(at, kPieces[draw.below(std::size(kPieces))]);
    default:
      return text.replace(at, length, kPieces[draw.below(std::size(kPieces))]);
  }
}

// "loaded", or the number of problems as text; anything else escapes and fails the test.
std::string outcome(const std::string& text) {
  try {
    YamlDocument document = YamlDocument::parse(text, "mutated.yaml");
    return read_scenario(document).text.empty() ? "empty" : "loaded";
  } catch (const ConfigError& e) {
    return e.problems().empty() || std::string(e.what()).empty() ? "no message" : "refused";
  }
}

}  // namespace

TEST_CASE("scenario: mutated files load or are refused with a message, and never crash") {
  const std::string original = k3_text();
  REQUIRE(outcome(original) == "loaded");
  Draw draw(2048);
  int loaded = 0, refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string text = original;
    for (std::size_t n = 1 + draw.below(3); n > 0; --n) text = mutate(text, draw);
    const std::string result = outcome(text);
    CAPTURE(text);
    CHECK((result == "loaded" || result == "refused"));
    ++(result == "loaded" ? loaded : refused);
  }
  CHECK(loaded > 50);    // comments and blanks may change
  CHECK(refused > 500);  // most of the text means something
}

TEST_CASE("scenario: cutting the file anywhere loads or is refused, and never crashes") {
  const std::string original = k3_text();
  for (std::size_t length = 0; length < original.size(); length += 3) {
    const std::string result = outcome(original.substr(0, length));
    CHECK((result == "loaded" || result == "refused"));
  }
}
