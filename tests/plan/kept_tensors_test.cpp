#include "plan/kept_tensors.h"

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "plan/attention_scratch.h"
#include "plan/memory_events.h"
#include "tests/support/small_plans.h"

namespace reckon {
namespace {

OpList dense(const Plan& plan) {
  return section_ops(plan, Section::dense_layer, single_document_work(plan));
}

Bytes layer_bytes(const Plan& plan, Recompute recompute = Recompute::none, int stage = 0) {
  return kept_tensors(plan, dense(plan), recompute, stage).bytes();
}

std::vector<std::string> recomputed(const OpList& list, const KeptSet& set) {
  std::vector<std::string> names;
  for (const int op : set.recomputed_ops) names.emplace_back(list.ops[static_cast<std::size_t>(op)].name);
  return names;
}

Plan agoq(Plan plan, NumberFormat format = NumberFormat::int4) {
  using enum ActivationClass;
  plan.activations.stored = format;
  for (const ActivationClass c : {query, key, value, attention_output})
    plan.activations.classes[c] = {false, NumberFormat::bf16};
  for (const ActivationClass c : {qkv_input, ffn_input, down_input})
    plan.activations.classes[c] = {true, NumberFormat::bf16};
  return plan;
}

// (T/t) (8h + 4ad + 4gd + 6f + 4a + 8): 139,400 bytes a token for Llama-3-8B in bf16.
TEST(KeptTensors, LlamaLayerKeepsTheBytesOfTheTensorTable) {
  EXPECT_EQ(layer_bytes(llama3_8b(8192)).value, 139400LL * 8192);
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 8;
  plan.parallel.sequence = true;
  EXPECT_EQ(layer_bytes(plan).value, 139400LL * 8192 / 8);
}

// T (8h + 8) + (T/t) (4ad + 4gd + 6f + 4a)
TEST(KeptTensors, WithoutSequenceParallelismTheStreamIsNotDivided) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 8;
  EXPECT_EQ(layer_bytes(plan).value, 8192LL * (8 * 4096 + 8) + 8192LL / 8 * (4 * 4096 + 4 * 1024 + 6 * 14336 + 4 * 32));
}

// GPT, unfused attention: s b h (34 + 5 a s / h) of arXiv 2205.05198 without what dropout keeps (two masks of 1 byte an
// element, the attention mask and the dropped-out scores), which this project has none of: s b h (32 + 2 a s / h). The
// paper leaves out the norm statistics: two norms, two fp32 a row.
TEST(KeptTensors, GptLayerWithUnfusedAttentionKeepsThePapersBytesWithoutDropout) {
  Plan plan = gpt(32);
  plan.kernels.attention = AttentionKernel::unfused;
  EXPECT_EQ(layer_bytes(plan).value, 32 * 64 * 32 + 2 * 4 * 32 * 32 + 2 * 2 * 4 * 32);
  EXPECT_EQ(layer_bytes(plan, Recompute::selective).value, 32 * 64 * 32 + 2 * 2 * 4 * 32);
  EXPECT_EQ(recomputed(dense(plan), kept_tensors(plan, dense(plan), Recompute::selective, 0)),
            (std::vector<std::string>{"attention"}));
}

// Lossless: 4 + 2 g/a + 2 f/h hidden tensors of 2 bytes; 11.4 for LLaMA2-13B, statistics apart.
TEST(KeptTensors, ElementwiseRecomputeDropsNormAndActivationOutputs) {
  const Plan plan = llama2_13b(1024);
  const std::int64_t statistics = 1024 * (4 * 40 + 8);
  EXPECT_EQ(layer_bytes(plan, Recompute::elementwise).value, 1024LL * 2 * (6 * 5120 + 2 * 13824) + statistics);
  EXPECT_EQ(recomputed(dense(plan), kept_tensors(plan, dense(plan), Recompute::elementwise, 0)),
            (std::vector<std::string>{"attention_norm", "ffn_norm", "activation"}));
}

TEST(KeptTensors, FullRecomputeKeepsTheLayersInputAndRunsEveryOpAgain) {
  const Plan plan = llama3_8b(1024);
  const OpList list = dense(plan);
  const KeptSet set = kept_tensors(plan, list, Recompute::full, 0);
  EXPECT_EQ(set.bytes().value, 1024LL * 4096 * 2);
  EXPECT_EQ(set.recomputed_ops.size(), list.ops.size());
}

// AGoQ on the fused list: q, k, v and output at 16 bits (the output is also the projection's input), two norm inputs,
// gate and up at 4 bits and one bf16 scale per 128, statistics as they are.
TEST(KeptTensors, AgoqStoresNormInputsAndGateAndUpAtFourBits) {
  const Plan plan = agoq(llama2_13b(1024));
  const std::int64_t quantized = 1024LL * (2 * 5120 + 2 * 13824);
  EXPECT_EQ(layer_bytes(plan).value, 1024LL * 4 * 5120 * 2 + quantized / 2 + quantized / 128 * 2 + 1024 * (4 * 40 + 8));
}

// 16.1 units of 2 bytes a token and hidden element are kept as computed; AGoQ keeps 4 of them and a quarter of the 7.4
// of two norm inputs, gate and up. Scales and statistics cost 0.03 of the ratio.
TEST(KeptTensors, AgoqKeepsLessThanHalfOfTheFusedStack) {
  const auto kept = static_cast<double>(layer_bytes(llama2_13b(1024)).value);
  const auto agoq_kept = static_cast<double>(layer_bytes(agoq(llama2_13b(1024))).value);
  EXPECT_GT(kept / agoq_kept, 2.2);
  EXPECT_NEAR(kept / agoq_kept, 16.1 / (4 + 0.25 * 7.4), 0.06);
}

TEST(KeptTensors, StagesWidenWhatIsStoredBelowSixteenBits) {
  Plan plan = agoq(llama2_13b(1024));
  plan.activations.bits_by_stage = {4, 5, 6, 8};
  const std::int64_t quantized = 1024LL * (2 * 5120 + 2 * 13824);
  for (int stage = 1; stage < 4; ++stage) {
    const int bits = plan.activations.bits_by_stage[static_cast<std::size_t>(stage)];
    EXPECT_EQ((layer_bytes(plan, Recompute::none, stage) - layer_bytes(plan)).value, quantized * (bits - 4) / 8);
  }
}

TEST(KeptTensors, SharedStorageIsKeptOnceInTheMostPreciseFormat) {
  Plan plan = llama3_8b(1024);
  const Bytes plain = layer_bytes(plan);
  const Bytes output(1024LL * 4096 * 2);
  plan.activations.classes[ActivationClass::projection_input] = {false, NumberFormat::int4};
  EXPECT_EQ(layer_bytes(plan), plain);  // attention_output keeps the same storage at 16 bits
  plan.activations.classes[ActivationClass::attention_output] = {false, NumberFormat::int8};
  EXPECT_EQ(layer_bytes(plan), plain - output + storage_bytes({NumberFormat::int8}, 1024LL * 4096));
}

TEST(KeptTensors, RestoringAProductsOutputRunsThatProductAgain) {
  Plan plan = llama3_8b(1024);
  plan.activations.classes[ActivationClass::gate] = plan.activations.classes[ActivationClass::up] = {true, {}};
  const OpList list = dense(plan);
  const KeptSet set = kept_tensors(plan, list, Recompute::none, 0);
  EXPECT_EQ(recomputed(list, set), (std::vector<std::string>{"gate_up"}));
  plan.activations.classes[ActivationClass::norm_input] = {true, {}};  // the first one has nothing to come from
  const KeptSet more = kept_tensors(plan, list, Recompute::none, 0);
  EXPECT_EQ(recomputed(list, more), (std::vector<std::string>{"projection", "attention_residual", "gate_up"}));
  EXPECT_EQ((set.bytes() - more.bytes()).value, 1024LL * 4096 * 2);
}

// bf16 logits and one log-sum-exp a row; an fp32 copy instead; nothing but the row sums.
TEST(KeptTensors, LossKernelsKeepTheirLogits) {
  Plan plan = llama3_8b(8192);
  const auto head_bytes = [&](LossKernel kernel) {
    plan.kernels.loss = kernel;
    const OpList list = section_ops(plan, Section::head, {});
    return kept_tensors(plan, list, Recompute::none, 0).bytes().value;
  };
  const std::int64_t cells = 8192LL * 128256;
  const std::int64_t rest = 8192LL * (2 * 2 * 4096 + 4 + 4);  // norm input and output, statistic, row sum
  EXPECT_EQ(head_bytes(LossKernel::fused), 2 * cells + rest);
  EXPECT_EQ(head_bytes(LossKernel::fp32_logits), 4 * cells + rest);
  EXPECT_EQ(head_bytes(LossKernel::chunked), rest);
}

// Peak of Megatron's loss: bf16 logits and their fp32 copy (6 bytes), of the fused one: 2 bytes, gradient in place.
TEST(TransientPeak, LossKernelsPeakAsTheirTableSays) {
  Plan plan = llama3_8b(8192);
  const std::int64_t cells = 8192LL * 128256;
  const auto peak = [&](LossKernel kernel) {
    plan.kernels.loss = kernel;
    const OpList list = section_ops(plan, Section::head, {});
    const KeptSet kept = kept_tensors(plan, list, Recompute::none, 0);
    const TransientPeak transient = transient_peak(list, kept);
    return std::pair((kept.bytes() + transient.forward).value, (kept.bytes() + transient.backward).value);
  };
  const std::int64_t small = 8192LL * 4096 * 2 * 4;  // stream, its norm and their gradients
  EXPECT_NEAR(static_cast<double>(peak(LossKernel::fp32_logits).first), 6.0 * cells, small);
  EXPECT_NEAR(static_cast<double>(peak(LossKernel::fp32_logits).second), 6.0 * cells, small);
  EXPECT_NEAR(static_cast<double>(peak(LossKernel::fused).first), 2.0 * cells, small);
  EXPECT_NEAR(static_cast<double>(peak(LossKernel::fused).second), 2.0 * cells, small);
  EXPECT_LT(peak(LossKernel::chunked).second, cells);
}

// h = 64, 4 heads, f = 256, 32 tokens, GPT in bf16, flash on a CPU: walked by hand. One hidden tensor U = 32*64*2 =
// 4096 bytes. The scratch of attention is larger than everything else, so both peaks lie there.
TEST(TransientPeak, GptLayerByHand) {
  Plan plan = gpt(32);
  plan.hardware.device.is_cpu = true;
  const OpList list = dense(plan);
  const KeptSet kept = kept_tensors(plan, list, Recompute::none, 0);
  const TransientPeak peak = transient_peak(list, kept);
  const std::int64_t scratch = 4 * attention_scratch_elements(16, true);
  // Kept tensors that are made after attention, or freed before its backward: residual U, normed U with its mean and
  // deviation of 32 rows, FFN hidden and its activation 4U each.
  const std::int64_t after_attention = 10 * 4096 + 2 * 32 * 4;
  EXPECT_EQ(peak.forward.value, scratch - after_attention);
  // Gradients of the stream and of the output U each, of q, k, v 3U and once more in fp32; row sums of 4 heads.
  EXPECT_EQ(peak.backward.value, scratch + 5 * 4096 + 4 * 32 * 3 * 64 + 4 * 4 * 32 - after_attention);
}

TEST(MemoryEvents, EveryBlockIsFreedOrHandedOn) {
  std::mt19937 random(7);
  Plan sp = llama3_8b(64), mla = small_mla(), moe = small_moe(), ulysses = llama3_8b(64), qwen = llama3_8b(64),
       olmo = llama3_8b(64), unfused = gpt(32), neox = gpt(32);
  sp.parallel.tensor = 4;
  sp.parallel.sequence = true;
  ulysses.parallel.ulysses = 4;
  ulysses.parallel.ring = 2;
  qwen.model.qk_norm = true;
  olmo.model.qk_norm_full = olmo.model.post_norm = true;
  olmo.model.pre_norm = false;
  unfused.kernels.attention = AttentionKernel::unfused;
  neox.model.parallel_block = true;
  neox.model.block_norms = 1;
  const NumberFormat formats[] = {NumberFormat::bf16, NumberFormat::int8, NumberFormat::int4, NumberFormat::nf4};
  const Recompute modes[] = {Recompute::none, Recompute::elementwise, Recompute::selective, Recompute::full};
  int walked = 0;
  for (Plan plan : {llama3_8b(64), sp, mla, moe, ulysses, qwen, olmo, unfused, neox})
    for (int trial = 0; trial < 60; ++trial) {
      plan.activations.classes.clear();
      plan.kernels.loss = static_cast<LossKernel>(random() % 3);
      plan.activations.stored = formats[random() % 4];
      for (const ActivationClass c : policy_classes())
        if (random() % 3 == 0) plan.activations.classes[c] = {random() % 2 == 0, formats[random() % 4]};
      for (const Section section : {Section::embedding, Section::dense_layer, Section::moe_layer, Section::head}) {
        if (section == Section::moe_layer && !plan.model.is_moe()) continue;
        const OpList list = section_ops(plan, section, single_document_work(plan));
        const bool layer = section == Section::dense_layer || section == Section::moe_layer;
        const KeptSet kept = kept_tensors(plan, list, layer ? modes[random() % 4] : Recompute::none, 0);
        std::map<int, std::int64_t> live{{input_block(list), input_bytes(list).value}};
        const auto walk = [&](const std::vector<MemoryEvent>& events) {
          for (const MemoryEvent& event : events) {
            if (event.allocates) {
              ASSERT_TRUE(live.emplace(event.block, event.bytes.value).second)
                  << plan.model.name << " trial " << trial << ": block " << event.block << " allocated twice by "
                  << list.ops[static_cast<std::size_t>(event.op)].name;
            } else {
              ASSERT_TRUE(live.contains(event.block)) << "freed but not allocated";
              ASSERT_EQ(live[event.block], event.bytes.value);
              live.erase(event.block);
            }
          }
        };
        walk(forward_events(list, kept));
        if (HasFatalFailure()) return;
        std::int64_t after_forward = 0;
        for (const auto& [block, bytes] : live) after_forward += bytes;
        const std::int64_t output = output_gradient_bytes(list).value;
        EXPECT_EQ(after_forward, kept.bytes().value + output) << list.ops.front().name;
        if (output_block(list) >= 0) live.erase(output_block(list));
        if (output_gradient_block(list) >= 0) live[output_gradient_block(list)] = output;
        walk(backward_events(list, kept));
        if (HasFatalFailure()) return;
        std::int64_t left = 0;
        for (const auto& [block, bytes] : live) left += bytes;
        const bool passes_gradient = section != Section::embedding;
        EXPECT_EQ(left, passes_gradient ? input_bytes(list).value : 0) << list.ops.front().name;
        EXPECT_EQ(live.contains(input_gradient_block(list)), passes_gradient) << list.ops.front().name;
        ++walked;
      }
    }
  EXPECT_EQ(walked, 60 * (9 * 3 + 1));
}

TEST(TransientPeak, IsNeverNegativeAndFullRecomputeHoldsOneLayer) {
  const Plan plan = llama3_8b(1024);
  const OpList list = dense(plan);
  const KeptSet kept = kept_tensors(plan, list, Recompute::none, 0);
  const KeptSet full = kept_tensors(plan, list, Recompute::full, 0);
  EXPECT_GE(transient_peak(list, kept).forward.value, 0);
  // The whole layer is restored before its backward.
  EXPECT_GE(transient_peak(list, full).backward + full.bytes(), kept.bytes());
}

// A stage with 16 bits keeps tensors as they were computed: the bytes of an unscaled plan.
TEST(KeptTensors, SixteenBitsOfAStageAreTheComputedFormat) {
  Plan plan = llama3_8b(1024);
  const Bytes unscaled = layer_bytes(plan);
  plan.activations.stored = NumberFormat::int4;
  plan.activations.bits_by_stage = {16, 4};
  EXPECT_EQ(layer_bytes(plan, Recompute::none, 0), unscaled);
  EXPECT_LT(layer_bytes(plan, Recompute::none, 1), unscaled);
}

}  // namespace
}  // namespace reckon
