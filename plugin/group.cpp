#include "plugin/group.hpp"

namespace onehop {

Group& group_of(const Image& image) {
  thread_local std::array<Group, kMaxImages> groups;
  return groups[image.index];
}

}  // namespace onehop
