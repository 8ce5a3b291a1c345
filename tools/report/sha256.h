// SHA-256 of a text, as 64 hexadecimal digits: names a scenario in summary.json. Source: FIPS 180-4.
#pragma once

#include <string>
#include <string_view>

namespace k3sim {

std::string sha256_hex(std::string_view text);

}  // namespace k3sim
