// The files of `onehop tune`: what it has measured so far, and the plan file. Each is replaced whole, so that
// whoever reads it, or ends this program, finds the old one or the new one.
#pragma once

#include <string>
#include <vector>

#include "tools/onehop/tune_rivals.hpp"
#include "tools/onehop/tune_steps.hpp"

namespace onehop::tune {

Status write_whole(const std::string& path, const std::string& text);

class State {
 public:
  /// Goes on with what is in the file, if that is of the same machine and options.
  static Result<State> open(const std::string& path, const Machine&, const std::string& options);

  const std::vector<Measured>& results() const { return results_; }
  const std::vector<RivalMeasured>& rivals() const { return rivals_; }
  bool has(const Step&) const;
  bool has(const RivalStep&) const;
  Status add(Measured);
  Status add(RivalMeasured);

 private:
  Status write() const;

  std::string path_, options_;
  Machine machine_;
  std::vector<Measured> results_;
  std::vector<RivalMeasured> rivals_;
};

/// Whether there is no such file, or a plan file.
Status can_take_plan(const std::string& path);

/// Puts a plan into a plan file, in place of what that has for the same machine.
Status put_plan(const std::string& path, const FilePlan&);

}  // namespace onehop::tune
