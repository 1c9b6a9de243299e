#include "tools/onehop/bench/side_spec.hpp"

namespace onehop::bench {

Result<std::vector<SideSpec>> sides_of(const Options& options) {
  std::vector<SideSpec> sides{{"NCCL", false, "", {}}, {"onehop", true, "", {}}};
  if (options.control) sides.push_back({"NCCL again", false, "the same settings again", {}});
  std::vector<std::string> rivals = options.rivals ? tool::usual_rivals() : std::vector<std::string>{};
  rivals.insert(rivals.end(), options.more_rivals.begin(), options.more_rivals.end());
  for (const std::string& text : rivals) {
    const Result<tool::NcclSettings> settings = tool::parse_nccl_settings(text);
    if (!settings) return settings.error();
    sides.push_back({"NCCL with " + text, false, text, *settings});
  }
  return sides;
}

}  // namespace onehop::bench
