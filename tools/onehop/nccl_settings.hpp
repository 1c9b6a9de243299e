// Settings of NCCL itself that may make the calls faster which it keeps: what `onehop bench` compares with,
// and what `onehop tune` tries for its suggestions. onehop never sets them for a job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugin/result.hpp"

namespace onehop::tool {

/// Environment variables, on top of the user's own.
using NcclSettings = std::vector<std::pair<std::string, std::string>>;

/// "NCCL_PROTO=LL NCCL_MAX_NCHANNELS=4": words with an equals sign.
Result<NcclSettings> parse_nccl_settings(const std::string& text);

/// NCCL's better settings, as far as the user's own environment does not forbid them.
std::vector<std::string> usual_rivals();

/// What counts as faster, and as worth a suggestion: at most this part of the other time.
inline constexpr double kClearly = 0.95;

/// Above a list of such settings.
inline constexpr const char* kSuggestionsFollow =
    "For calls that onehop leaves to NCCL, these settings of NCCL were faster here (µs). onehop never sets "
    "them; they also act on NCCL's other operations:\n";

}  // namespace onehop::tool
