#include "tools/onehop/way_in.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace onehop::tool {
namespace {

constexpr const char* kFile = "libnccl-net-onehop.so";
/// NCCL ignores longer names.
constexpr size_t kLongestName = 254;

/// Where the variables come to stand in NCCL's history.
constexpr NcclVersion kTakesPaths = nccl(2, 21), kTakesLists = nccl(2, 27), kHasTuner = nccl(2, 19),
                      kTunerAlsoInNet = nccl(2, 21), kHasProfiler = nccl(2, 23),
                      kProfilerAlsoInNet = nccl(2, 28);

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}
std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_onehop(const std::string& entry) {
  return name_of(entry) == kFile || entry == "onehop";
}

bool none(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(), ::tolower);
  return value == "none";
}

std::string appended(const std::string& list, const std::string& entry) {
  return list.empty() ? entry : list + ":" + entry;
}

class Choice {
 public:
  explicit Choice(const Situation& s) : s_(s) {}

  /// Whether the environment leads to onehop already.
  std::optional<std::string> already() const {
    for (const char* name : {"LD_PRELOAD", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"}) {
      const std::vector<std::string> entries = parts_of(value(name), ", :");
      if (std::any_of(entries.begin(), entries.end(), is_onehop)) return name;
    }
    return std::nullopt;
  }

  Result<WayIn> preload(const std::string& why) const {
    if (s_.plugin.find_first_of(": \t") != std::string::npos)
      return Error{"LD_PRELOAD cannot hold a path with a colon or a blank: " + s_.plugin};
    // Behind what is there: that may be a libnccl, or a library that wants to be first.
    return WayIn{{{"LD_PRELOAD", appended(value("LD_PRELOAD"), s_.plugin)}}, why};
  }

  Result<WayIn> of(NcclVersion version) const {
    const std::string release = "NCCL " + to_string(version);
    const std::string site = sites_net_plugin();
    if (site.empty()) return in_net_place(version, release);
    return beside(site, version, release);
  }

 private:
  std::string value(const char* name) const { return value_of(s_.environment, name); }
  bool by_default(const char* kind) const {
    return std::find(s_.defaults.begin(), s_.defaults.end(), kind) != s_.defaults.end();
  }

  /// What stands, or would stand without a word, in the place of the network plugin; empty: nothing.
  std::string sites_net_plugin() const {
    const std::string set = value("NCCL_NET_PLUGIN");
    if (none(set)) return "";
    return set.empty() && by_default("net") ? "libnccl-net.so" : set;
  }

  Result<WayIn> in_net_place(NcclVersion version, const std::string& release) const {
    if (version >= kTakesPaths) {
      if (s_.plugin.size() > kLongestName) return preload(release + " takes no path of this length");
      if (version >= kTakesLists && s_.plugin.find(',') != std::string::npos)
        return preload(release + " takes a comma for the end of a name");
      return WayIn{{{"NCCL_NET_PLUGIN", s_.plugin}}, release + " takes a path"};
    }
    if (name_of(s_.plugin) != kFile || s_.plugin.find(':') != std::string::npos)
      return preload(release + " takes only a part of the file's name, and the file is called otherwise");
    // Behind what is there: no library of the job may be found elsewhere than before.
    return WayIn{{{"NCCL_NET_PLUGIN", "onehop"},
                  {"LD_LIBRARY_PATH", appended(value("LD_LIBRARY_PATH"), folder_of(s_.plugin))}},
                 release + " takes a part of the file's name, and looks for the file in the library path"};
  }

  Result<WayIn> beside(const std::string& site, NcclVersion version, const std::string& release) const {
    const std::string keeps = ", which leaves NCCL_NET_PLUGIN to " + site;
    if (version >= kTakesLists) {
      if (s_.plugin.size() > kLongestName || s_.plugin.find(',') != std::string::npos)
        return preload("this path cannot stand in a list" + keeps);
      return WayIn{{{"NCCL_NET_PLUGIN", s_.plugin + "," + site}}, release + " takes a list, with " + site};
    }
    static_assert(kTakesLists < kProfilerAlsoInNet);
    if (version >= kHasProfiler && free("NCCL_PROFILER_PLUGIN", "profiler"))
      return WayIn{{{"NCCL_PROFILER_PLUGIN", s_.plugin}},
                   release + " takes no list, but has profilers" + keeps};
    // From 2.21 on NCCL looks for a tuner in the network plugin too, and would not if one were named.
    if (version >= kHasTuner && version < kTunerAlsoInNet && free("NCCL_TUNER_PLUGIN", "tuner"))
      return WayIn{{{"NCCL_TUNER_PLUGIN", s_.plugin}}, release + " takes no list, but has tuners" + keeps};
    return preload(release + " has no other free place" + keeps);
  }

  bool free(const char* variable, const char* kind) const {
    return value(variable).empty() && !by_default(kind) && s_.plugin.size() <= kLongestName;
  }

  const Situation& s_;
};

}  // namespace

Result<WayIn> choose_way_in(const Situation& situation) {
  const Choice choice(situation);
  for (const NcclVersion version : situation.versions)
    if (!is_known(version)) return Error{"NCCL " + to_string(version) + " is not known to this onehop"};
  if (const auto name = choice.already()) return WayIn{{}, *name + " leads to onehop already"};
  if (situation.preload) return choice.preload("asked for");
  if (situation.versions.empty())
    return Error{"no libnccl was found that this command would load; name it with --nccl, or use --preload"};

  Result<WayIn> first = choice.of(situation.versions.front());
  for (const NcclVersion version : situation.versions) {
    const Result<WayIn> way = choice.of(version);
    if (!way || !first || way->set != first->set)
      return choice.preload("the command may load several releases of NCCL, which take different variables");
  }
  return first;
}

}  // namespace onehop::tool
