// `onehop run`: starts a command with onehop in it, by whatever variable its NCCL takes.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "plugin/settings.hpp"
#include "tools/onehop/child.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/find_nccl.hpp"
#include "tools/onehop/find_plugin.hpp"
#include "tools/onehop/nccl_library.hpp"
#include "tools/onehop/way_in.hpp"

namespace onehop::tool {
namespace {

/// As in env(1).
constexpr int kFailed = 125, kCannotBeRun = 126, kNotFound = 127;

struct Options {
  std::string plugin;
  std::vector<std::string> nccl;
  bool preload = false, strict = false, dry_run = false, json = false;
  std::map<std::string, std::string> settings;  ///< by variable; what was given
};

struct Decision {
  std::vector<NcclLibrary> libraries;
  std::vector<std::string> remarks;  ///< about libraries
  Result<WayIn> way = Error{};
};

/// ONEHOP_MAX_BYTES is --max-bytes.
std::string option_of(const SettingRow& row) {
  std::string name = std::string(row.name).substr(std::strlen("ONEHOP_"));
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(c));
  return "--" + name;
}

void add_setting(CLI::App& run, const SettingRow& row, std::string& value) {
  const std::string name = option_of(row), text = std::string(row.text) + " (" + row.name + ")";
  CLI::Option* option = nullptr;
  // A switch needs no value, and cannot have one behind a blank: that would be the command.
  if (std::strcmp(row.allowed, "0 or 1") == 0)
    option = run.add_flag(name + "{1}", value, text)->option_text("[=0]");
  else
    option = run.add_option(name, value, text)->option_text(row.allowed);
  option->group("Settings")->check([&row](const std::string& given) {
    Settings scratch;
    return row.parse(given, scratch) ? "" : std::string("allowed: ") + row.allowed;
  });
}

Decision decide(const Options& options, const std::vector<std::string>& command,
                const Environment& environment, const std::string& plugin) {
  Decision decision;
  std::vector<FoundNccl> found;
  for (const std::string& path : options.nccl) found.push_back({path, "--nccl"});
  if (found.empty()) found = find_nccl(command, environment);
  Situation situation{.environment = environment, .plugin = plugin, .preload = options.preload};
  for (const FoundNccl& nccl : found) {
    auto library = examine(nccl.path, own_path());
    std::string remark = nccl.path + " (" + nccl.how + "): ";
    if (!library) {
      decision.remarks.push_back(remark + library.reason());
      decision.way = Error{nccl.path + ": " + library.reason()};
      return decision;
    }
    remark += "NCCL " + to_string(library->version);
    if (!library->refused.empty()) remark += ", which onehop cannot take over: " + library->refused;
    decision.remarks.push_back(remark);
    if (library->refused.empty() || !is_known(library->version))
      situation.versions.push_back(library->version);
    decision.libraries.push_back(*library);
  }
  if (!found.empty() && situation.versions.empty()) {
    decision.way = Error{"onehop cannot take over any libnccl that was found"};
    return decision;
  }
  situation.defaults = default_plugins(environment);
  decision.way = choose_way_in(situation);
  return decision;
}

void print_json(const Decision& decision, const Options& options) {
  nlohmann::ordered_json document = {{"libraries", nlohmann::ordered_json::array()},
                                     {"set", nlohmann::ordered_json::object()}};
  for (const NcclLibrary& library : decision.libraries)
    document["libraries"].push_back(
        {{"path", library.path}, {"version", to_string(library.version)}, {"refused", library.refused}});
  for (const auto& [name, value] : options.settings)
    if (!value.empty()) document["set"][name] = value;
  if (decision.way)
    for (const auto& [name, value] : decision.way->set) document["set"][name] = value;
  document["on"] = static_cast<bool>(decision.way);
  document["why"] = decision.way ? decision.way->why : decision.way.reason();
  std::printf("%s\n", document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_text(std::FILE* to, const Decision& decision, const Options& options) {
  if (options.dry_run)
    for (const std::string& remark : decision.remarks) std::fprintf(to, "found %s\n", remark.c_str());
  if (!decision.way) {
    std::fprintf(to, "onehop run: nothing is set, the command runs on NCCL alone: %s\n",
                 decision.way.reason().c_str());
    return;
  }
  for (const auto& [name, value] : decision.way->set)
    std::fprintf(to, "%s%s=%s\n", options.dry_run ? "" : "onehop run: ", name.c_str(), value.c_str());
  if (options.dry_run)
    for (const auto& [name, value] : options.settings)
      if (!value.empty()) std::fprintf(to, "%s=%s\n", name.c_str(), value.c_str());
  if (options.dry_run || decision.way->set.empty())
    std::fprintf(to, "because %s\n", decision.way->why.c_str());
}

[[noreturn]] void become(std::vector<std::string> command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  std::fprintf(stderr, "onehop run: %s: %s\n", command[0].c_str(), std::strerror(error));
  throw Exit{error == ENOENT ? kNotFound : kCannotBeRun};
}

void run(const Options& options, std::vector<std::string> command) {
  if (command.empty()) throw CLI::RequiredError("a command");
  const auto plugin = find_plugin(options.plugin);
  if (!plugin) {
    std::fprintf(stderr, "onehop run: %s\n", plugin.reason().c_str());
    throw Exit{kFailed};
  }
  const Environment environment = with_configuration_files(environment_of(environ));
  const Decision decision = decide(options, command, environment, *plugin);
  if (options.json && options.dry_run)
    print_json(decision, options);
  else
    print_text(options.dry_run ? stdout : stderr, decision, options);
  std::fflush(stdout);
  if (!decision.way && options.strict) throw Exit{kFailed};
  if (options.dry_run) return;
  if (decision.way) {
    for (const auto& [name, value] : options.settings)
      if (!value.empty()) setenv(name.c_str(), value.c_str(), 1);
    for (const auto& [name, value] : decision.way->set) setenv(name.c_str(), value.c_str(), 1);
  }
  become(std::move(command));
}

}  // namespace

void add_run(CLI::App& app, std::vector<std::string> behind) {
  CLI::App* run =
      app.add_subcommand("run", "start a command with onehop in it: onehop run [options] [--] COMMAND...");
  run->prefix_command();
  auto options = std::make_shared<Options>();
  run->add_flag("--dry-run", options->dry_run, "only print what would be set, and why");
  run->add_flag("--json", options->json, "with --dry-run: as JSON");
  run->add_flag("--strict", options->strict, "end with 125 instead of running the command without onehop");
  run->add_flag("--preload", options->preload, "by LD_PRELOAD, whatever the release of NCCL");
  run->add_option("--nccl", options->nccl,
                  "the libnccl that the command will load, instead of looking for it")
      ->allow_extra_args(false)
      ->check(CLI::ExistingFile);
  run->add_option("--plugin", options->plugin,
                  "libnccl-net-onehop.so, instead of the one beside this command");
  for (const SettingRow& row : setting_rows()) add_setting(*run, row, options->settings[row.name]);
  run->footer(
      "Exit codes: the command's; 125 if onehop itself failed, or with --strict could not be set up; 126 if "
      "the\n"
      "command cannot be run; 127 if it was not found. One line on standard error says what was set.");
  run->callback([run, options, behind = std::move(behind)] {
    std::vector<std::string> command = run->remaining();
    // The command began before the "--", or begins behind it.
    const auto rest = behind.begin() + (command.empty() && !behind.empty() ? 1 : 0);
    command.insert(command.end(), rest, behind.end());
    tool::run(*options, command);
  });
}

}  // namespace onehop::tool
