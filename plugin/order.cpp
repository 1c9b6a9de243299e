#include "plugin/order.hpp"

namespace onehop {

Order::~Order() {
  if (device_ == nullptr) return;
  if (done_ != nullptr) device_->destroy_event(done_);
  if (captured_done_ != nullptr) device_->destroy_event(captured_done_);
  if (joined_ != nullptr) device_->destroy_event(joined_);
}

Status Order::open(Device& device, bool mixes) {
  device_ = &device;
  mixes_ = mixes;
  for (Event* event : {&done_, &captured_done_, &joined_}) {
    Result<Event> made = device.create_event();
    if (!made) return made.error();
    *event = *made;
  }
  return {};
}

Status Order::before(Stream stream, const StreamState& state) {
  if (!state.captured()) {
    const bool follows = !any_captured_ && state.id == stream_;
    return !any_ || follows ? Status{} : device_->wait(stream, done_);
  }
  if (state.capture != capture_) return mixes_ ? device_->wait_external(stream, done_) : Status{};
  // A stream that takes part in a capture cannot be destroyed before its end: within one capture the handle
  // tells streams apart.
  return stream == capture_stream_ ? Status{} : device_->wait(stream, captured_done_);
}

Status Order::after(Stream stream, const StreamState& state) {
  if (!state.captured()) return note_eager(stream, state);
  if (Status noted = note_captured(stream, state); !noted || !mixes_) return noted;
  any_ = any_captured_ = true;
  return device_->record_external(done_, stream, capture_record_);
}

Status Order::after_passed(Stream stream, const StreamState& state) {
  return state.captured() ? note_captured(stream, state) : note_eager(stream, state);
}

Status Order::note_eager(Stream stream, const StreamState& state) {
  any_ = true;
  stream_ = state.id;
  return device_->record(done_, stream);
}

Status Order::note_captured(Stream stream, const StreamState& state) {
  if (state.capture != capture_) capture_record_ = {};
  capture_ = state.capture;
  capture_stream_ = stream;
  return device_->record(captured_done_, stream);
}

Status Order::join(Stream first, Stream other) {
  Status status = device_->record(joined_, other);
  if (status) status = device_->wait(first, joined_);
  return status;
}

Result<bool> Order::idle() {
  if (!any_) return true;
  return device_->finished(done_);
}

}  // namespace onehop
