#include "tools/onehop/nccl_settings.hpp"

#include <cstdlib>
#include <cstring>
#include <sstream>

namespace onehop::tool {

Result<NcclSettings> parse_nccl_settings(const std::string& text) {
  NcclSettings settings;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{"a rival is one or more NAME=VALUE, divided by spaces, not \"" + text + "\""};
    settings.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  if (settings.empty()) return Error{"a rival without settings"};
  return settings;
}

std::vector<std::string> usual_rivals() {
  std::vector<std::string> rivals{
      "NCCL_GRAPH_MIXING_SUPPORT=0",
      "NCCL_GRAPH_MIXING_SUPPORT=0 NCCL_GRAPH_STREAM_ORDERING=0",
      "NCCL_PROTO=LL",
      "NCCL_PROTO=LL128",
      "NCCL_PROTO=Simple",
      "NCCL_GRAPH_MIXING_SUPPORT=0 NCCL_PROTO=LL",
      "NCCL_MAX_NCHANNELS=1",
      "NCCL_MAX_NCHANNELS=2",
      "NCCL_MAX_NCHANNELS=4",
      "NCCL_MAX_NCHANNELS=8",
  };
  const char* no_peers = std::getenv("NCCL_P2P_DISABLE");
  if (no_peers == nullptr || std::strcmp(no_peers, "0") == 0) rivals.emplace_back("NCCL_P2P_LEVEL=SYS");
  return rivals;
}

}  // namespace onehop::tool
