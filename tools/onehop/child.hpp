// Another program that is asked something, with a deadline: what it does to itself does not matter here.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "plugin/result.hpp"
#include "tools/onehop/environment.hpp"

namespace onehop::tool {

/// What a program wrote to standard output; an Error if it could not be run, ended with another code than 0
/// or by a signal, or was still running at the deadline (it is killed then). Its standard error is thrown
/// away.
Result<std::string> output_of(const std::vector<std::string>& command, const Environment&,
                              std::chrono::milliseconds deadline);

/// What execve() takes: a pointer to each text, and a null. Of `texts`, for as long as they last.
std::vector<char*> pointers(std::vector<std::string>& texts);

/// This program itself.
std::string own_path();

}  // namespace onehop::tool
