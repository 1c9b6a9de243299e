#include "tools/onehop/find_nccl.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/onehop/child.hpp"

namespace onehop::tool {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr const char* kLibrary = "libnccl.so.2";

class Found {
 public:
  void add(const std::string& path, const std::string& how) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error || !fs::is_regular_file(real, error)) return;
    const bool known =
        std::any_of(list.begin(), list.end(), [&](const FoundNccl& f) { return f.path == real; });
    if (!known) list.push_back({real, how});
  }
  std::vector<FoundNccl> list;
};

/// The loader runs by itself here, and answers instead of starting the program.
std::string traced(const std::string& program, Environment environment) {
  environment["LD_TRACE_LOADED_OBJECTS"] = "1";
  const auto text = output_of({program}, environment, seconds(10));
  return text ? *text : "";
}

bool is_dynamic_elf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof magic);
  if (!file || std::string_view(magic, 4) !=
                   "\x7F"
                   "ELF")
    return false;
  // A static program would be started by traced(). The name of the loader stands near the beginning.
  std::string head(16384, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find("/ld-linux") != std::string::npos;
}

/// "	libnccl.so.2 => /usr/lib/libnccl.so.2 (0x00007f...)"
void add_traced(Found& found, const std::string& text, const std::string& how) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t arrow = line.find(" => "), end = line.rfind(" (");
    if (line.find("libnccl.so") == std::string::npos || arrow == std::string::npos || end < arrow + 4)
      continue;
    found.add(line.substr(arrow + 4, end - arrow - 4), how);
  }
}

/// The Python that runs `program`: itself, or that of its first line; empty: none.
std::string python_of(const std::string& program, const Environment& environment) {
  if (fs::path(program).filename().string().rfind("python", 0) == 0) return program;
  std::ifstream file(program);
  std::string line;
  if (!std::getline(file, line) || line.rfind("#!", 0) != 0 || line.find("python") == std::string::npos)
    return "";
  const std::vector<std::string> words = parts_of(line.substr(2), " \t\r");
  if (words.empty()) return "";
  if (words.front().ends_with("/env")) return program_of(words.back(), environment);
  return words.front();
}

void add_python(Found& found, const std::string& python, const Environment& environment) {
  if (python.empty()) return;
  // Nothing is imported: that would take seconds, and run other people's code.
  constexpr const char* kLook =
      "import glob,os,sys\n"
      "for p in sys.path:\n"
      "  for f in ('nvidia/nccl/lib','torch/lib'):\n"
      "    for n in glob.glob(os.path.join(glob.escape(p),f,'libnccl.so*')): print(n)\n";
  Environment quiet = environment;
  quiet.erase("LD_PRELOAD");
  const auto text = output_of({python, "-c", kLook}, quiet, seconds(20));
  if (!text) return;
  for (const std::string& path : parts_of(*text, "\n")) found.add(path, "a Python package of " + python);
}

void add_named(Found& found, const Environment& environment) {
  for (const std::string& entry : parts_of(value_of(environment, "LD_PRELOAD"), " :"))
    if (fs::path(entry).filename().string().rfind("libnccl.so", 0) == 0) found.add(entry, "LD_PRELOAD");
  for (const char* name : {"VLLM_NCCL_SO_PATH", "SGLANG_NCCL_SO_PATH"})
    if (const std::string path = value_of(environment, name); !path.empty()) found.add(path, name);
}

void add_library_path(Found& found, const Environment& environment) {
  for (const std::string& folder : parts_of(value_of(environment, "LD_LIBRARY_PATH"), ":;")) {
    if (!fs::exists(folder + "/" + kLibrary)) continue;
    found.add(folder + "/" + kLibrary, "LD_LIBRARY_PATH");
    return;  // the first is the one
  }
}

/// The loader's cache: "	libnccl.so.2 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnccl.so.2"
std::string in_loader_cache(const std::string& name) {
  const auto text = output_of({"/sbin/ldconfig", "-p"}, {}, seconds(10));
  if (!text) return "";
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    if (const size_t arrow = line.find(" => "); arrow != std::string::npos &&
                                                line.rfind("\t" + name + " ", 0) == 0 &&
                                                line.find("x86-64") != std::string::npos)
      return line.substr(arrow + 4);
  return "";
}

void add_loader_cache(Found& found) {
  if (const std::string path = in_loader_cache(kLibrary); !path.empty())
    found.add(path, "the loader's cache");
}

/// Where a name without a folder would be found.
std::string in_search_path(const std::string& name, const Environment& environment) {
  for (const std::string& folder : parts_of(value_of(environment, "LD_LIBRARY_PATH"), ":;"))
    if (const fs::path path = fs::path(folder) / name; fs::exists(path)) return path;
  return in_loader_cache(name);
}

}  // namespace

std::string program_of(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  for (const std::string& folder : parts_of(value_of(environment, "PATH"), ":")) {
    const fs::path path = fs::path(folder) / name;
    if (access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path)) return path;
  }
  return "";
}

std::vector<FoundNccl> find_nccl(const std::vector<std::string>& command, const Environment& environment) {
  Found found;
  const std::string program = command.empty() ? "" : program_of(command.front(), environment);
  if (!program.empty() && is_dynamic_elf(program))
    add_traced(found, traced(program, environment), "linked to");
  if (!found.list.empty()) return found.list;

  add_named(found, environment);
  std::string python = program.empty() ? "" : python_of(program, environment);
  if (python.empty()) python = program_of("python3", environment);
  add_python(found, python, environment);
  add_library_path(found, environment);
  if (found.list.empty()) add_loader_cache(found);
  return found.list;
}

std::vector<FoundNccl> find_every_nccl(const Environment& environment) {
  Found found;
  add_named(found, environment);
  add_python(found, program_of("python3", environment), environment);
  add_library_path(found, environment);
  add_loader_cache(found);
  return found.list;
}

std::vector<std::string> default_plugins(const Environment& environment) {
  std::vector<std::string> kinds;
  for (const std::string kind : {"net", "tuner", "profiler"})
    if (!in_search_path("libnccl-" + kind + ".so", environment).empty()) kinds.push_back(kind);
  return kinds;
}

}  // namespace onehop::tool
