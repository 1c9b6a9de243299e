#include "tools/onehop/bench/models.hpp"

namespace onehop::bench {
namespace {

// Source: hidden_size and num_hidden_layers in the config.json of each repository, as published.
constexpr Model kModels[] = {
    {"Qwen/Qwen3-30B-A3B", 2048, 48},
    {"Qwen/Qwen2.5-7B", 3584, 28},
    {"google/gemma-2-9b", 3584, 42},
    {"meta-llama/Llama-3.1-8B", 4096, 32},
    {"Qwen/Qwen3-235B-A22B", 4096, 94},
    {"meta-llama/Llama-4-Scout-17B-16E", 5120, 48},
    {"Qwen/Qwen2.5-32B", 5120, 64},
    {"mistralai/Mixtral-8x22B-v0.1", 6144, 56},
    {"deepseek-ai/DeepSeek-V3", 7168, 61},
    {"meta-llama/Llama-3.1-70B", 8192, 80},
    {"mistralai/Mistral-Large-Instruct-2407", 12288, 88},
    {"meta-llama/Llama-3.1-405B", 16384, 126},
};

}  // namespace

std::span<const Model> models() {
  return kModels;
}

}  // namespace onehop::bench
