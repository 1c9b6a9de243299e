// Small files of /sys and /proc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace onehop::tool {

/// All of a file, at most 1 MiB; empty if it cannot be read.
std::string bytes_of_file(const std::filesystem::path&);

/// The same without blanks and line feeds at its end.
std::string text_of(const std::filesystem::path&);

/// "0x10de", "16", "-1"; nothing if it is no number.
std::optional<int64_t> number_in(const std::string& text);

}  // namespace onehop::tool
