// Errors are values: a Status or a Result<T> carries the reason that a user will read.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace onehop {

/// Why something could not be done, in one sentence that a user understands.
struct Error {
  std::string reason;
};

/// Success, or the Error that says why not. True means success.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return !error_.has_value(); }
  /// Only for a failed Status.
  const std::string& reason() const { return error_->reason; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

/// A T, or the Error that says why there is none. True means that there is a value.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  /// Only for a failed Result.
  const std::string& reason() const { return error_.reason; }
  const Error& error() const { return error_; }

 private:
  std::optional<T> value_;
  Error error_;
};

}  // namespace onehop
