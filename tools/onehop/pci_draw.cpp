#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/onehop/pci.hpp"
#include "tools/onehop/units.hpp"

namespace onehop::tool {
namespace {

std::string link_text(const PciDevice& device) {
  if (device.link_width == 0 && device.link_generation == 0) return ", link unknown";
  const auto part = [](int value, int max, const char* before) {
    if (value == 0) return std::string("?");
    std::string text = fmt::format("{}{}", before, value);
    if (max != 0 && max != value) text += fmt::format(" of {}{}", before, max);
    return text;
  };
  return ", " + part(device.link_width, device.link_width_max, "x") + ", " +
         part(device.link_generation, device.link_generation_max, "Gen");
}

class Drawing {
 public:
  Drawing(const PciTree& tree, const std::map<std::string, std::string>& names) : tree_(tree), names_(names) {
    for (const std::string& gpu : tree.gpus()) {
      const std::vector<std::string> way = tree.way_up(gpu);
      tops_.insert(way.back());
      for (size_t i = 0; i + 1 < way.size(); ++i) below_[way[i + 1]].insert(way[i]);
    }
  }

  std::string text() {
    for (const std::string& top : tops_) {
      text_ += title(top) + "\n";
      branches(top, "");
    }
    return text_;
  }

 private:
  std::string title(const std::string& name) const {
    const auto found = tree_.devices.find(name);
    if (found == tree_.devices.end()) {
      std::string text = name.rfind("pci", 0) == 0 ? "root complex " + name.substr(3) : name;
      std::set<int> nodes;
      for (const std::string& gpu : tree_.gpus())
        if (tree_.way_up(gpu).back() == name) nodes.insert(tree_.devices.at(gpu).numa_node);
      if (nodes.size() == 1 && *nodes.begin() >= 0) text += fmt::format(", NUMA node {}", *nodes.begin());
      return text;
    }
    const PciDevice& device = found->second;
    if (device.is_gpu()) {
      const auto named = names_.find(name);
      std::string text =
          name + " " +
          (named != names_.end() ? named->second : fmt::format("GPU 10de:{:04x}", device.device));
      text += link_text(device);
      if (device.bar1_bytes) text += ", BAR 1 " + size_text(*device.bar1_bytes);
      return text;
    }
    std::string text =
        fmt::format("{} bridge {:04x}:{:04x}", name, device.vendor, device.device) + link_text(device);
    if (device.redirect == Redirect::kOn) text += ", ACS redirects";
    if (device.redirect == Redirect::kUnknown) text += ", ACS unknown";
    return text;
  }

  void branches(const std::string& name, const std::string& indent, int depth = 0) {
    constexpr int kDeepest = 32;
    const auto found = below_.find(name);
    if (found == below_.end() || depth == kDeepest) return;
    size_t left = found->second.size();
    for (const std::string& child : found->second) {
      const bool last = --left == 0;
      text_ += indent + (last ? "└─ " : "├─ ") + title(child) + "\n";
      branches(child, indent + (last ? "   " : "│  "), depth + 1);
    }
  }

  const PciTree& tree_;
  const std::map<std::string, std::string>& names_;
  std::set<std::string> tops_;
  std::map<std::string, std::set<std::string>> below_;
  std::string text_;
};

}  // namespace

std::string draw(const PciTree& tree, const std::map<std::string, std::string>& names) {
  return Drawing(tree, names).text();
}

}  // namespace onehop::tool
