// The `onehop` command. It links neither CUDA nor NCCL: it starts on a machine that has none of both.
#include <algorithm>

#include "onehop/onehop.h"
#include "tools/onehop/commands.hpp"
#ifdef ONEHOP_HAVE_BENCH
#include "tools/onehop/bench/bench.hpp"
#endif

int main(int argc, char** argv) {
  namespace tool = onehop::tool;
  // What stands behind the first "--" of `onehop run` is the command, or the command's own: releases of CLI11
  // differ in what they make of it.
  char** const dashes = argc > 1 && std::string(argv[1]) == "run"
                            ? std::find(argv, argv + argc, std::string("--"))
                            : argv + argc;
  CLI::App app("onehop: fast small all-reduces for NCCL jobs on PCIe nodes");
  app.set_version_flag("--version", ONEHOP_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 fine; 1 something was found that keeps onehop off, or could not be done; 2 usage.\n"
      "`onehop run` ends as its command does; 125, 126 and 127 as in env(1).");
  tool::add_run(app, {dashes, argv + argc});
  tool::add_doctor(app);
  tool::add_stats(app);
#ifdef ONEHOP_HAVE_BENCH
  onehop::bench::add_bench(app);
#endif
  tool::add_tune(app);
  tool::add_help(app);
  tool::add_version(app);
  tool::add_examine(app);
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const tool::Exit& end) {
    return end.code;
  } catch (const CLI::RuntimeError& end) {
    return end.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? tool::kOk : tool::kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onehop: %s\n", error.what());
    return tool::kFound;
  }
  return tool::kOk;
}
