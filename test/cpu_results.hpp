// A file for docs/results/ of a run that needs no GPU: what was counted, where, and with what.
#pragma once

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "onehop/onehop.h"

namespace onehop::test {

class CpuResults {
 public:
  using Json = nlohmann::ordered_json;

  /// `links`: what stood for them.
  CpuResults(const std::string& title, int argc, char** argv, const std::string& links) {
    std::string command;
    for (int i = 0; i < argc; ++i) command += std::string(i == 0 ? "" : " ") + argv[i];
    char date[16];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof(date), "%Y-%m-%d", std::gmtime(&now));
    const char* commit = std::getenv("ONEHOP_TEST_COMMIT");
    file_ = {{"title", title},
             {"date", date},
             {"command", command},
             {"commit", commit != nullptr ? commit : ""},
             {"hardware", processor()},
             {"gpus", 0},
             {"links", links},
             {"driver", ""},
             {"cuda", ""},
             {"nccl", ""},
             {"onehop", ONEHOP_VERSION},
             {"rows", Json::array()}};
  }

  void set(const std::string& key, Json value) { file_[key] = std::move(value); }
  void add(Json row) { file_["rows"].push_back(std::move(row)); }
  void write(const std::string& path) const { std::ofstream(path) << file_.dump(1) << "\n"; }

 private:
  static std::string processor() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
      if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    return "";
  }

  Json file_;
};

}  // namespace onehop::test
