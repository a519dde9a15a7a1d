#include "cost_model/scaled_times.h"

namespace reckon {

namespace {

void scale(std::vector<Seconds>& times, double factor) {
  for (Seconds& time : times) time *= factor;
}

void scale(SectionTimes& section, TimeFactors factors) {
  for (std::size_t i = 0; i < section.ops.size(); ++i) {
    OpTime& time = section.ops[i];
    const double factor = section.list.ops[i].kind == OpKind::attention ? factors.attention : factors.linear;
    time.forward *= factor;
    time.input_gradient *= factor;
    time.weight_gradient *= factor;
    scale(time.forward_collectives, factors.linear);
    scale(time.backward_collectives, factors.linear);
  }
  section.parameter_gather *= factors.linear;
  section.gradient_reduce *= factors.linear;
}

}  // namespace

OpTimes scaled(OpTimes times, TimeFactors factors) {
  for (SectionTimes* section : {&times.embedding, &times.dense_layer, &times.moe_layer, &times.head})
    scale(*section, factors);
  for (std::vector<Seconds>* list :
       {&times.pipeline_send, &times.optimizer, &times.gradient_reduce, &times.parameter_gather})
    scale(*list, factors.linear);
  times.tied_table_reduce *= factors.linear;
  times.storage *= factors.linear;
  return times;
}

}  // namespace reckon
