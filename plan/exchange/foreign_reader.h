// One reader for each kind of foreign file: fields of the source in, keys of a plan out. Private to plan/exchange.
#pragma once

#include "plan/exchange/foreign_plan.h"
#include "plan/exchange/source_fields.h"

namespace reckon {

/// What every reader works on. The reader sets plan keys through `fields`, which keeps the lists of `plan`.
struct ForeignReading {
  const ImportOptions& options;
  ForeignPlan& plan;
  SourceFields& fields;
};

void read_megatron(ForeignReading reading);
void read_deepspeed(ForeignReading reading);
void read_torchtitan(ForeignReading reading);
void read_nanotron(ForeignReading reading);
void read_accelerate(ForeignReading reading);
/// Takes the tree, because plan/hugging_face_config reads it.
void read_hugging_face(ForeignReading reading, const YamlValue& document);

/// Rows of one step: of what the source gives (0 = not given) the rest follows from
/// global = micro x accumulation x replicas. Sets batch.micro_batch and batch.global_batch, or reports what
/// contradicts.
struct BatchFields {
  std::string_view global_name, micro_name, accumulation_name;
  std::int64_t global = 0, micro = 0, accumulation = 0, replicas = 0;
};
void set_batch(SourceFields& fields, const BatchFields& batch);

/// The name of the file without folder and ending, as the name of a model that has none.
std::string stem_of(const std::string& file);

}  // namespace reckon
