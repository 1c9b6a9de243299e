#include "tools/onehop/tune_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace onehop::tune {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Machine& machine) {
  Json json = Json::object();
  for (size_t f = 0; f < kFacts; ++f) json[kFactNames[f]] = machine.facts[f];
  return json;
}

void put_geometry(Json& json, const Geometry& most) {
  if (most.blocks == 0) return;
  json["blocks"] = most.blocks;
  json["workers"] = most.workers;
}

Json json_of(const FilePlan& plan) {
  Json ranges = Json::array();
  for (const FilePlan::Range& range : plan.ranges) {
    Json json = {{"up_to", range.up_to}, {"method", range.method ? name_of(*range.method) : "NCCL"}};
    put_geometry(json, range.most);
    json["measured_at"] = range.measured_at;
    if (range.method) json["us"] = range.us;
    json["nccl_us"] = range.nccl_us;
    ranges.push_back(json);
  }
  Json json = {{"machine", json_of(plan.machine)}, {"measured", plan.measured}};
  if (plan.has_islands()) json["islands"] = show_islands(plan.islands);
  json["ranges"] = ranges;
  return json;
}

void put_times(Json& json, const Times& times) {
  if (times.counts()) {
    json["us"] = times.us;
    json["nccl_us"] = times.nccl_us;
  } else {
    json["dropped"] = times.dropped;
  }
}

Times times_of(const Json& json) {
  return {json.value("us", 0.0), json.value("nccl_us", 0.0), json.value("dropped", "")};
}

Json json_of(const Measured& m) {
  Json json = {{"round", m.step.round}, {"bytes", m.step.bytes}, {"method", name_of(m.step.method)}};
  put_geometry(json, m.step.most);
  put_times(json, m);
  return json;
}

Json json_of(const RivalMeasured& m) {
  Json json = {{"round", m.step.round}, {"settings", m.step.settings}, {"bytes", m.step.bytes}};
  put_times(json, m);
  return json;
}

Measured measured_of(const Json& json) {
  Measured m{times_of(json), {}};
  m.step.round = json.at("round");
  m.step.bytes = json.at("bytes");
  const std::string method = json.at("method");
  for (uint32_t i = 0; i < kMethods; ++i)
    if (method == name_of(static_cast<Method>(i))) m.step.method = static_cast<Method>(i);
  m.step.most = {json.value("blocks", 0u), json.value("workers", 0u)};
  return m;
}

RivalMeasured rival_of(const Json& json) {
  return {times_of(json), {json.at("round"), json.at("settings"), json.at("bytes")}};
}

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

}  // namespace

Status write_whole(const std::string& path, const std::string& text) {
  // One name, so that what an end at the wrong moment leaves behind is used up by the next.
  const std::string draft = path + ".draft";
  const auto failed = [&] {
    Error error{"cannot write " + path + ": " + std::strerror(errno)};
    (void)unlink(draft.c_str());
    return error;
  };
  const int file = ::open(draft.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return failed();
  bool ok = true;
  for (size_t done = 0; ok && done < text.size();) {
    const ssize_t now = write(file, text.data() + done, text.size() - done);
    ok = now > 0 || (now < 0 && errno == EINTR);
    if (now > 0) done += static_cast<size_t>(now);
  }
  // Before the new name: else a power cut could leave a file of that name with nothing in it.
  ok = ok && fsync(file) == 0;
  ok = close(file) == 0 && ok;
  if (!ok || rename(draft.c_str(), path.c_str()) != 0) return failed();
  return {};
}

Result<State> State::open(const std::string& path, const Machine& machine, const std::string& options) {
  State state;
  state.path_ = path;
  state.machine_ = machine;
  state.options_ = options;
  if (!exists(path)) return state;
  const std::string remedy = "; remove it, or name another by --state";
  try {
    const Json json = Json::parse(std::ifstream(path));
    if (json.at("onehop_tune") != 1 || json.at("machine") != json_of(machine))
      return Error{path + " is of another machine" + remedy};
    if (json.at("options") != options)
      return Error{path + " is of a run with other options (" + json.at("options").get<std::string>() + ")" +
                   remedy};
    for (const Json& item : json.at("steps")) state.results_.push_back(measured_of(item));
    for (const Json& item : json.value("nccl_settings", Json::array()))
      state.rivals_.push_back(rival_of(item));
  } catch (const Json::exception&) {
    return Error{path + " is no state of onehop tune" + remedy};
  }
  return state;
}

bool State::has(const Step& step) const {
  return std::any_of(results_.begin(), results_.end(), [&](const Measured& m) { return m.step == step; });
}

bool State::has(const RivalStep& step) const {
  return std::any_of(rivals_.begin(), rivals_.end(), [&](const RivalMeasured& m) { return m.step == step; });
}

Status State::add(Measured measured) {
  results_.push_back(std::move(measured));
  return write();
}

Status State::add(RivalMeasured measured) {
  rivals_.push_back(std::move(measured));
  return write();
}

Status State::write() const {
  Json steps = Json::array(), rivals = Json::array();
  for (const Measured& m : results_) steps.push_back(json_of(m));
  for (const RivalMeasured& m : rivals_) rivals.push_back(json_of(m));
  Json json = {{"onehop_tune", 1}, {"machine", json_of(machine_)}, {"options", options_}, {"steps", steps}};
  if (!rivals.empty()) json["nccl_settings"] = rivals;
  return write_whole(path_, json.dump(1) + "\n");
}

Status can_take_plan(const std::string& path) {
  if (!exists(path)) return {};
  const Result<PlanFile> old = read_plan_file(path);
  if (old) return {};
  return Error{path + " is no plan file (" + old.reason() + "); remove it, or name another by --out"};
}

Status put_plan(const std::string& path, const FilePlan& plan) {
  Json plans = Json::array();
  if (Status fits = can_take_plan(path); !fits) return fits;
  if (const Result<PlanFile> old = read_plan_file(path))
    for (const FilePlan& other : old->plans)
      if (other.machine != plan.machine) plans.push_back(json_of(other));
  plans.push_back(json_of(plan));
  const std::string text = Json{{"format", 1}, {"plans", plans}}.dump(1) + "\n";
  // What the plugin would refuse is not written.
  const Result<PlanFile> read = parse_plan_file(text);
  if (!read) return Error{"the plan would not be one: " + read.reason()};
  return write_whole(path, text);
}

}  // namespace onehop::tune
