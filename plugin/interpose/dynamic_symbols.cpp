// Symbol look-up through DT_GNU_HASH, or DT_HASH where an object has only that.
//
// Every address taken from the object is checked against its mapping, so that an odd object (a truncated
// table, a dynamic section that a packer rewrote) is an object without the symbol instead of a crash.
#include "plugin/interpose/dynamic_symbols.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

namespace onehop::interpose {
namespace {

class SymbolTable {
 public:
  explicit SymbolTable(const MappedObject& object) : object_(object) {
    for (auto* entry = static_cast<const ElfW(Dyn)*>(object.dynamic);
         inside(reinterpret_cast<uintptr_t>(entry), sizeof *entry) && entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols_ = address(entry->d_un.d_ptr);
          break;
        case DT_STRTAB:
          strings_ = address(entry->d_un.d_ptr);
          break;
        case DT_STRSZ:
          strings_size_ = entry->d_un.d_val;
          break;
        case DT_GNU_HASH:
          gnu_hash_ = address(entry->d_un.d_ptr);
          break;
        case DT_HASH:
          sysv_hash_ = address(entry->d_un.d_ptr);
          break;
        default:
          break;
      }
    }
    if (!inside(strings_, strings_size_)) strings_size_ = 0;
  }

  Image::Symbol find(const char* name) const {
    if (symbols_ == 0 || strings_size_ == 0) return {};
    if (gnu_hash_ != 0) return find_gnu(name);
    if (sysv_hash_ != 0) return find_sysv(name);
    return {};
  }

 private:
  bool inside(uintptr_t at, size_t size) const {
    return at >= object_.begin && at < object_.end && size <= object_.end - at;
  }

  // glibc adds the base to these entries in memory when it maps an object; musl, and glibc for an object
  // whose dynamic section is read-only, leave them as the file has them. An offset is below any place that
  // the object can be mapped at, so the two cannot be confused.
  uintptr_t address(uintptr_t value) const {
    return value >= object_.begin && value < object_.end ? value : object_.base + value;
  }

  template <class T>
  bool read(uintptr_t at, T& value) const {
    if (!inside(at, sizeof value)) return false;
    std::memcpy(&value, reinterpret_cast<const void*>(at), sizeof value);
    return true;
  }

  bool read_word(uintptr_t table, size_t index, uint32_t& value) const {
    return read(table + index * sizeof value, value);
  }

  bool named(const ElfW(Sym) & symbol, const char* name) const {
    const size_t length = std::strlen(name) + 1;
    return symbol.st_name < strings_size_ && length <= strings_size_ - symbol.st_name &&
           std::memcmp(reinterpret_cast<const void*>(strings_ + symbol.st_name), name, length) == 0;
  }

  Image::Symbol function(size_t index, const char* name) const {
    ElfW(Sym) symbol;
    if (!read(symbols_ + index * sizeof symbol, symbol) || !named(symbol, name)) return {};
    const auto type = ELF64_ST_TYPE(symbol.st_info), binding = ELF64_ST_BIND(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) return {};
    if (binding != STB_GLOBAL && binding != STB_WEAK) return {};
    if (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC) return {};
    const uintptr_t at = object_.base + symbol.st_value;
    // All of it is read later.
    if (!inside(at, std::max<size_t>(symbol.st_size, 1))) return {};
    return {reinterpret_cast<unsigned char*>(at), symbol.st_size, type == STT_GNU_IFUNC};
  }

  Image::Symbol find_gnu(const char* name) const {
    struct Header {
      uint32_t buckets, first_symbol, bloom_words, bloom_shift;
    } header;
    if (!read(gnu_hash_, header) || header.buckets == 0 || header.bloom_words == 0) return {};
    uint32_t hash = 5381;
    for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);

    const uintptr_t bloom = gnu_hash_ + sizeof header;
    uint64_t word;
    if (!read(bloom + (hash / 64 % header.bloom_words) * sizeof word, word)) return {};
    const uint64_t bits = uint64_t{1} << (hash % 64) | uint64_t{1}
                                                           << ((hash >> (header.bloom_shift & 31)) % 64);
    if ((word & bits) != bits) return {};

    const uintptr_t buckets = bloom + header.bloom_words * sizeof word;
    const uintptr_t chains = buckets + header.buckets * sizeof(uint32_t);
    uint32_t index, chained;
    if (!read_word(buckets, hash % header.buckets, index) || index < header.first_symbol) return {};
    for (; read_word(chains, index - header.first_symbol, chained); ++index) {
      if ((chained | 1) == (hash | 1)) {
        if (const auto symbol = function(index, name); symbol.address != nullptr) return symbol;
      }
      if (chained & 1) break;  // the chain's last
    }
    return {};
  }

  Image::Symbol find_sysv(const char* name) const {
    struct Header {
      uint32_t buckets, chains;
    } header;
    if (!read(sysv_hash_, header) || header.buckets == 0) return {};
    uint32_t hash = 0;
    for (const char* c = name; *c != '\0'; ++c) {
      hash = (hash << 4) + static_cast<unsigned char>(*c);
      hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    const uintptr_t buckets = sysv_hash_ + sizeof header;
    const uintptr_t chains = buckets + header.buckets * sizeof(uint32_t);
    uint32_t index;
    if (!read_word(buckets, hash % header.buckets, index)) return {};
    // Counted, so that a chain that a damaged table makes circular ends; and no table is larger than its
    // object, so that it ends soon.
    if (!inside(chains, header.chains * sizeof(uint32_t))) return {};
    for (uint32_t steps = 0; index != 0 && index < header.chains && steps < header.chains; ++steps) {
      if (const auto symbol = function(index, name); symbol.address != nullptr) return symbol;
      if (!read_word(chains, index, index)) break;
    }
    return {};
  }

  MappedObject object_;
  uintptr_t symbols_ = 0, strings_ = 0, gnu_hash_ = 0, sysv_hash_ = 0;
  size_t strings_size_ = 0;
};

}  // namespace

Image::Symbol find_function(const MappedObject& object, const char* name) {
  if (object.dynamic == nullptr) return {};
  return SymbolTable(object).find(name);
}

}  // namespace onehop::interpose
