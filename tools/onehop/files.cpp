#include "tools/onehop/files.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>

namespace onehop::tool {

std::string bytes_of_file(const std::filesystem::path& path) {
  // Files of /proc have no size, and some never end.
  std::string bytes(1 << 20, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(file.gcount() > 0 ? static_cast<size_t>(file.gcount()) : 0);
  return bytes;
}

std::string text_of(const std::filesystem::path& path) {
  std::string text = bytes_of_file(path);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\0')) text.pop_back();
  return text;
}

std::optional<int64_t> number_in(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const int64_t value = std::strtoll(text.c_str(), &end, 0);
  if (errno != 0 || end == text.c_str() || *end != '\0') return std::nullopt;
  return value;
}

}  // namespace onehop::tool
