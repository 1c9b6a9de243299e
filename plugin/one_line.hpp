// Text from elsewhere (the environment, a peer's record) on its way into a line for the user.
#pragma once

#include <string>

namespace onehop {

/// The text without characters that would end the line or command a terminal: each becomes a question mark.
inline std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return text;
}

}  // namespace onehop
