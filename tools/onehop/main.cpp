// The `onehop` command.
#include "onehop/onehop.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "plugin/settings.hpp"

namespace {

void print_settings() {
  for (const onehop::SettingRow& row : onehop::setting_rows())
    std::printf("%s\n  %s\n  allowed: %s; default: %s%s\n", row.name, row.text, row.allowed,
                *row.fallback != '\0' ? row.fallback : "not set",
                row.agree ? "; must agree on all ranks" : "");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("onehop: fast small all-reduces for NCCL jobs on PCIe nodes");
  app.set_version_flag("--version", ONEHOP_VERSION);
  app.require_subcommand(1);

  CLI::App* help = app.add_subcommand("help", "explain a part of onehop");
  help->require_subcommand(1);
  CLI::App* env = help->add_subcommand("env", "the settings, all environment variables");
  bool markdown = false;
  env->add_flag("--markdown", markdown, "as docs/settings.md");
  env->callback(
      [&] { markdown ? (void)std::fputs(onehop::settings_markdown().c_str(), stdout) : print_settings(); });

  CLI11_PARSE(app, argc, argv);
  return 0;
}
