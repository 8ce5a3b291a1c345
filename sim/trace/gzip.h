// gzip of a byte string without a time stamp or name, so that equal inputs give equal files. Source: RFC 1952, zlib.
#pragma once

#include <string>
#include <string_view>

namespace k3sim {

std::string gzip(std::string_view bytes, int level = 6);
std::string gunzip(std::string_view bytes);  // throws std::runtime_error when the data is damaged

}  // namespace k3sim
