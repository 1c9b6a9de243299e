// `onehop help env`: the settings.
#include <cstdio>

#include "plugin/settings.hpp"
#include "tools/onehop/commands.hpp"

namespace onehop::tool {
namespace {

void print_settings() {
  for (const SettingRow& row : setting_rows())
    std::printf("%s\n  %s\n  allowed: %s; default: %s%s\n", row.name, row.text, row.allowed,
                *row.fallback != '\0' ? row.fallback : "not set",
                row.agree ? "; must agree on all ranks" : "");
}

}  // namespace

void add_help(CLI::App& app) {
  CLI::App* help = app.add_subcommand("help", "explain a part of onehop");
  help->require_subcommand(1);
  CLI::App* env = help->add_subcommand("env", "the settings, all environment variables");
  const CLI::Option* markdown = env->add_flag("--markdown")->description("as docs/settings.md");
  env->callback([markdown] {
    if (markdown->count() != 0)
      std::fputs(settings_markdown().c_str(), stdout);
    else
      print_settings();
  });
}

}  // namespace onehop::tool
