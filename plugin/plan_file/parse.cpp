// From bytes to a PlanFile. Nothing of the file is trusted: its form first (Form), then every value.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "plugin/hash.hpp"
#include "plugin/plan_file/plan_file.hpp"

namespace onehop {
namespace {

using Json = nlohmann::json;

/// Refuses what JSON allows and no plan file has: a name twice in one object (of which a reader would see
/// one), and nesting or numbers of values that could only be meant to keep a reader busy.
class Form : public nlohmann::json_sax<Json> {
 public:
  std::string wrong;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    return names_.back().insert(name).second || refuse("it has a name twice in one object");
  }
  bool parse_error(size_t at, const std::string&, const Json::exception&) override {
    return refuse("it is no JSON, from byte " + std::to_string(at) + " on");
  }

 private:
  static constexpr size_t kDeepest = 6, kMostValues = 100'000;

  bool refuse(const std::string& why) {
    if (wrong.empty()) wrong = why;
    return false;
  }
  bool value() { return ++values_ <= kMostValues || refuse("it has too many values"); }
  bool open() {
    names_.emplace_back();
    return names_.size() <= kDeepest ? value() : refuse("it is nested too deeply");
  }
  bool close() {
    names_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> names_;  ///< of the objects that are open
  size_t values_ = 0;
};

/// One object of the file: each look takes a name out, and what is left over is not known.
class Fields {
 public:
  Fields(const Json& object, std::string where) : where_(std::move(where)) {
    if (object.is_object())
      object_ = &object;
    else
      wrong("is no object");
  }

  const Json* find(const char* name, bool needed = true) {
    if (object_ == nullptr) return nullptr;
    const auto at = object_->find(name);
    if (at != object_->end()) {
      ++seen_;
      return &*at;
    }
    if (needed) wrong(std::string("has no \"") + name + '"');
    return nullptr;
  }
  std::string text(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return {};
    const auto* text = value->get_ptr<const std::string*>();
    if (text != nullptr && text->size() <= kLongestFact &&
        std::all_of(text->begin(), text->end(), is_fact_character))
      return *text;
    wrong(std::string("has a \"") + name + "\" that is no plain text");
    return {};
  }
  uint64_t number(const char* name, uint64_t least, uint64_t most, bool needed = true) {
    const Json* value = find(name, needed);
    if (value == nullptr) return 0;
    const auto* number = value->get_ptr<const Json::number_unsigned_t*>();
    if (number != nullptr && *number >= least && *number <= most) return *number;
    wrong(std::string("has a \"") + name + "\" that is no whole number from " + std::to_string(least) +
          " to " + std::to_string(most));
    return 0;
  }
  double microseconds(const char* name) {
    constexpr double kLongest = 1e9;
    const Json* value = find(name);
    if (value == nullptr) return 0;
    const double us = value->is_number() ? value->get<double>() : 0;
    if (us > 0 && us <= kLongest) return us;
    wrong(std::string("has a \"") + name + "\" that is no time");
    return 0;
  }
  void wrong(const std::string& what) {
    if (reason_.empty()) reason_ = where_ + " " + what;
  }
  /// After all that is known was looked for.
  const std::string& reason() {
    if (object_ != nullptr && object_->size() != seen_) wrong("has a name that is not known");
    return reason_;
  }

 private:
  const std::string where_;
  const Json* object_ = nullptr;
  size_t seen_ = 0;
  std::string reason_;
};

std::optional<Method> method_of(const std::string& name) {
  for (uint32_t m = 0; m < kMethods; ++m)
    if (name == name_of(static_cast<Method>(m))) return static_cast<Method>(m);
  return std::nullopt;
}

/// A range above `below` bytes.
Result<FilePlan::Range> range_of(const Json& json, uint64_t below, const std::string& where) {
  Fields fields(json, where);
  FilePlan::Range range;
  range.up_to = fields.number("up_to", below + 1, kLargestPlannedCall);
  range.measured_at = fields.number("measured_at", below + 1, std::max(range.up_to, below + 1));
  range.nccl_us = fields.microseconds("nccl_us");
  const std::string method = fields.text("method");
  if (method != "NCCL") {
    range.method = method_of(method);
    if (!range.method) fields.wrong("has a method that onehop does not know");
    range.us = fields.microseconds("us");
    const uint64_t blocks = fields.number("blocks", 1, kMaxBlocks, false),
                   workers = fields.number("workers", 32, kMaxWorkers, false);
    if (blocks != 0 || workers != 0) {
      if (!is_geometry(blocks, workers)) fields.wrong("has blocks and workers that are no geometry");
      range.most = {static_cast<uint32_t>(blocks), static_cast<uint32_t>(workers)};
    }
  }
  if (!fields.reason().empty()) return Error{fields.reason()};
  return range;
}

Result<FilePlan> plan_of(const Json& json, const std::string& where) {
  Fields fields(json, where);
  FilePlan plan;
  plan.measured = fields.text("measured");
  if (const Json* machine = fields.find("machine")) {
    Fields facts(*machine, "the machine of " + where);
    for (size_t f = 0; f < kFacts; ++f) plan.machine.facts[f] = facts.text(kFactNames[f]);
    if (!facts.reason().empty()) return Error{facts.reason()};
  }
  if (const Json* islands = fields.find("islands", false)) {
    const auto* text = islands->get_ptr<const std::string*>();
    if (text == nullptr || text->size() > kLongestFact || !parse_islands(*text, plan.islands) ||
        plan.islands.empty())
      fields.wrong("has \"islands\" that are none");
  }
  const Json* ranges = fields.find("ranges");
  if (ranges != nullptr && (!ranges->is_array() || ranges->empty() || ranges->size() > Plan{}.ranges.size()))
    fields.wrong("has no list of 1 to " + std::to_string(Plan{}.ranges.size()) + " ranges");
  if (!fields.reason().empty()) return Error{fields.reason()};
  for (const Json& item : *ranges) {
    const uint64_t below = plan.ranges.empty() ? 0 : plan.ranges.back().up_to;
    const Result<FilePlan::Range> range =
        range_of(item, below, "range " + std::to_string(plan.ranges.size() + 1) + " of " + where);
    if (!range) return range.error();
    if (range->method == Method::kIslands && plan.islands.empty())
      return Error{where + " has no \"islands\", and a range that needs them"};
    plan.ranges.push_back(*range);
  }
  return plan;
}

}  // namespace

Result<PlanFile> parse_plan_file(std::string_view bytes) {
  if (bytes.size() > kLargestPlanFile)
    return Error{"it has more than " + std::to_string(kLargestPlanFile) + " bytes"};
  // The JSON reader takes it for the end.
  if (bytes.find('\0') != std::string_view::npos) return Error{"it has a zero byte"};
  Form form;
  if (!Json::sax_parse(bytes, &form)) return Error{form.wrong};
  const Json json = Json::parse(bytes, nullptr, false);
  Fields fields(json, "it");
  (void)fields.number("format", 1, 1);
  const Json* plans = fields.find("plans");
  if (plans != nullptr && (!plans->is_array() || plans->size() > kMostPlans))
    fields.wrong("has no list of up to " + std::to_string(kMostPlans) + " plans");
  if (!fields.reason().empty()) return Error{fields.reason()};
  PlanFile file;
  for (const Json& item : *plans) {
    Result<FilePlan> plan = plan_of(item, "plan " + std::to_string(file.plans.size() + 1));
    if (!plan) return plan.error();
    file.plans.push_back(std::move(*plan));
  }
  file.hash = Hash().add(bytes).value();
  if (file.hash == 0) file.hash = 1;
  return file;
}

}  // namespace onehop
