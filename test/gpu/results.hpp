// A file for docs/results/: what was measured, where, and with what.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "onehop/onehop.h"

namespace onehop::test {

class Results {
 public:
  using Json = nlohmann::ordered_json;

  Results(const std::string& title, int argc, char** argv, const std::string& links, int nccl) {
    std::string command;
    for (int i = 0; i < argc; ++i) command += std::string(i == 0 ? "" : " ") + argv[i];
    char date[16];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof(date), "%Y-%m-%d", std::gmtime(&now));
    int devices = 0, runtime = 0;
    cudaDeviceProp properties{};
    (void)cudaGetDeviceCount(&devices);
    (void)cudaGetDeviceProperties(&properties, 0);
    (void)cudaRuntimeGetVersion(&runtime);
    const char* commit = std::getenv("ONEHOP_TEST_COMMIT");
    file_ = {{"title", title},
             {"date", date},
             {"command", command},
             {"commit", commit != nullptr ? commit : ""},
             {"hardware", std::to_string(devices) + "x " + properties.name},
             {"gpus", devices},
             {"links", links},
             {"driver", driver()},
             {"cuda", std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10)},
             {"nccl", std::to_string(nccl / 10000) + "." + std::to_string(nccl % 10000 / 100) + "." +
                          std::to_string(nccl % 100)},
             {"onehop", ONEHOP_VERSION},
             {"rows", Json::array()}};
  }

  void add(Json row) { file_["rows"].push_back(std::move(row)); }
  /// To another list than "rows", for what is not a time.
  void add_to(const char* list, Json row) { file_[list].push_back(std::move(row)); }
  void write(const std::string& path) const { std::ofstream(path) << file_.dump(1) << "\n"; }

 private:
  static std::string driver() {
    std::ifstream file("/proc/driver/nvidia/version");
    std::string line;
    std::getline(file, line);
    // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..."
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos)
        return word;
    return "";
  }

  Json file_;
};

}  // namespace onehop::test
