// What a source of measured runs is known to do, keyed by its id: configs/score/sources.yaml. It replaces the default
// of an empty cell, says which memory total a source reports, and on which cluster it ran where that is published.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace reckon {

enum class MemoryTotal { peak_allocated, peak_reserved, device_used };
enum class MemoryStage { largest, first, last };

struct ScoreSource {
  std::map<std::string, std::string> cells;        // column -> value of an empty cell
  std::map<std::string, std::string> tied_models;  // model name -> "0" or "1"
  std::map<std::string, std::string> vocabulary;   // part of a model name -> size
  std::map<std::string, std::string> hardware;     // gpu cell (with memory: "A100-80") -> hardware name
  std::map<std::string, std::string> plan;         // dotted plan key -> value
  std::map<std::string, double> attention_rate;    // gpu -> share of its peak that long causal attention reaches
  bool split_by_cost = false;                      // stages of equal cost, the head counted (nanotron)
  MemoryTotal memory_total = MemoryTotal::peak_allocated;
  MemoryStage memory_stage = MemoryStage::largest;
};

/// Throws ConfigError with file, line and column.
std::map<std::string, ScoreSource> load_score_sources(const std::filesystem::path& file);

}  // namespace reckon
