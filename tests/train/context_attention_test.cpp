// Attention spread over Ulysses x ring against a per-document reference in FP64: outputs and gradients of queries, keys
// and values for random packs, placements and degrees; bytes and messages against the transfer plan; documents that do
// not touch each other.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "plan/row_share.h"
#include "runtime/comm/local_communicator.h"
#include "runtime/train/rank_scope.h"
#include "tests/train/context_rank.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::ContextRank;

constexpr Placement kPlacements[] = {Placement::contiguous, Placement::zigzag, Placement::zigzag_per_document,
                                     Placement::striped, Placement::balanced};

struct Case {
  std::int64_t ulysses = 1, ring = 1, heads = 4, kv_heads = 4, rows = 1;
  std::int64_t row_tokens = 0;
  std::vector<std::vector<std::int64_t>> lengths;  // by row
  Placement placement = Placement::contiguous;
  AttentionScope scope = AttentionScope::per_document;
  NumberFormat compute = NumberFormat::fp32;
};

constexpr std::int64_t kHeadDim = 16;

Plan plan_of(const Case& c) {
  Plan plan = testing::small_plan();
  plan.model.heads = c.heads;
  plan.model.kv_heads = c.kv_heads;
  plan.model.head_dim = kHeadDim;
  plan.model.hidden = c.heads * kHeadDim;
  plan.batch = {c.row_tokens, c.rows, c.rows};
  plan.parallel.ulysses = c.ulysses;
  plan.parallel.ring = c.ring;
  plan.documents.source = "fineweb";
  plan.documents.placement = c.placement;
  plan.documents.attention = c.scope;
  plan.precision.compute = plan.activations.stored = c.compute;
  return plan;
}

/// Queries, keys, values side by side and the output's gradient, of all rows in order.
struct Data {
  at::Tensor qkv, dy;
};

struct Result {
  at::Tensor output, gradient;  // [rows * row_tokens, ...], gradient like qkv
};

Data random_data(const Case& c, std::uint64_t seed) {
  at::manual_seed(seed);
  const std::int64_t tokens = c.rows * c.row_tokens;
  return {at::randn({tokens, (c.heads + 2 * c.kv_heads) * kHeadDim}, at::kDouble),
          at::randn({tokens, c.heads * kHeadDim}, at::kDouble)};
}

std::vector<PackedRow> packed_rows(const Case& c) {
  std::vector<PackedRow> rows;
  std::int64_t document = 0;
  for (const auto& lengths : c.lengths) {
    rows.emplace_back();
    for (const std::int64_t length : lengths) rows.back().pieces.push_back({document++, 0, length});
  }
  return rows;
}

/// Softmax attention with its gradients written out, head by head and document by document: with P = softmax(S),
/// dV = P^T dy, dS = P * (dy V^T - rowsum(P * dy V^T)), dQ = scale dS K, dK = scale dS^T Q.
Result reference(const Case& c, const Data& data) {
  const std::int64_t q = c.heads * kHeadDim, kv = c.kv_heads * kHeadDim;
  const double scale = 1.0 / std::sqrt(double{kHeadDim});
  Result result{at::zeros_like(data.dy), at::zeros_like(data.qkv)};
  const auto attend = [&](std::int64_t first, std::int64_t length, std::int64_t head) {
    const std::int64_t key_column = q + head / (c.heads / c.kv_heads) * kHeadDim;
    const auto part = [&](const at::Tensor& x, std::int64_t column) {
      return x.narrow(0, first, length).narrow(1, column, kHeadDim);
    };
    const at::Tensor query = part(data.qkv, head * kHeadDim), key = part(data.qkv, key_column);
    const at::Tensor value = part(data.qkv, key_column + kv), dy = part(data.dy, head * kHeadDim);
    const at::Tensor mask = at::full({length, length}, -1e300, at::kDouble).triu(1);
    const at::Tensor p = (at::matmul(query, key.t()) * scale + mask).softmax(-1);
    const at::Tensor dp = at::matmul(dy, value.t());
    const at::Tensor ds = p * (dp - (p * dp).sum(1, true)) * scale;
    part(result.output, head * kHeadDim).copy_(at::matmul(p, value));
    part(result.gradient, head * kHeadDim).add_(at::matmul(ds, key));
    part(result.gradient, key_column).add_(at::matmul(ds.t(), query));
    part(result.gradient, key_column + kv).add_(at::matmul(p.t(), dy));
  };
  for (std::int64_t row = 0; row < c.rows; ++row) {
    const DocumentBorders borders = attention_borders(c.lengths[static_cast<std::size_t>(row)], c.row_tokens, c.scope);
    for (std::int64_t document = 0; document < borders.documents(); ++document)
      for (std::int64_t head = 0; head < c.heads; ++head)
        attend(row * c.row_tokens + borders.starts[static_cast<std::size_t>(document)], borders.length(document), head);
  }
  return result;
}

/// The same on ulysses x ring ranks, put together again.
Result distributed(
    const Case& c, const Data& data, const std::function<void(ContextRank&)>& look = [](ContextRank&) {}) {
  const Plan plan = plan_of(c);
  const std::vector<PackedRow> rows = packed_rows(c);
  const at::ScalarType type = scalar_type(c.compute);
  Result result{at::zeros_like(data.dy), at::zeros_like(data.qkv)};
  std::mutex mutex;
  run_ranks_as_threads(static_cast<int>(plan.world_size()), {}, [&](Communicator& world) {
    MemoryAccount& account =
        *new MemoryAccount(Bytes(0), world.rank());  // never destroyed: `result` may be booked on it
    const RankScope scope(account);
    ContextRank rank(plan, rows, world);
    const at::Tensor places = rank.places();
    rank.run(data.qkv.index_select(0, places).to(type), data.dy.index_select(0, places).to(type));
    const std::lock_guard lock(mutex);
    result.output.index_copy_(0, places, rank.output().to(at::kDouble));
    result.gradient.index_copy_(0, places, rank.gradient().to(at::kDouble));
    look(rank);
  });
  return result;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

/// 1 to 40 documents of 1 to thousands of tokens in rows that divide by the degrees.
std::vector<std::int64_t> random_lengths(std::mt19937& random, std::int64_t row_tokens) {
  const auto uniform = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  std::vector<std::int64_t> lengths;
  std::int64_t left = row_tokens;
  for (std::int64_t wanted = uniform(1, 40); wanted > 0 && left > 0; --wanted) {
    const double share = std::pow(std::uniform_real_distribution<double>(0.0, 1.0)(random), 3.0);
    lengths.push_back(std::clamp<std::int64_t>(std::llround(share * static_cast<double>(row_tokens)), 1, left));
    left -= lengths.back();
  }
  return lengths;  // what is left is padding
}

struct Degrees {
  std::int64_t ulysses, ring;
};
constexpr Degrees kDegrees[] = {{1, 1}, {2, 1}, {1, 2}, {4, 1}, {2, 2}, {1, 4}, {8, 1}, {4, 2}, {2, 4}, {1, 8}, {1, 3}};

std::vector<Case> random_cases(NumberFormat compute) {
  std::mt19937 random(20260630);
  std::vector<Case> cases;
  for (std::size_t i = 0; i < 50; ++i) {
    const Degrees degrees = kDegrees[i % std::size(kDegrees)];
    Case c;
    c.ulysses = degrees.ulysses;
    c.ring = degrees.ring;
    c.heads = 8;
    c.kv_heads = std::int64_t{1} << (i % 4);  // 1, 2, 4, 8 = as many as heads: replicated where Ulysses has more ranks
    c.rows = i % 3 == 0 ? 2 : 1;
    c.compute = compute;
    c.placement = kPlacements[i % std::size(kPlacements)];
    c.row_tokens = 48 * std::uniform_int_distribution<std::int64_t>(1, i % 5 == 0 ? 50 : 12)(random);
    for (std::int64_t row = 0; row < c.rows; ++row) c.lengths.push_back(random_lengths(random, c.row_tokens));
    cases.push_back(c);
  }
  return cases;
}

std::string describe(const Case& c) {
  return std::to_string(c.ulysses) + " x " + std::to_string(c.ring) + ", placement " +
         std::to_string(static_cast<int>(c.placement)) + ", kv heads " + std::to_string(c.kv_heads) + ", row of " +
         std::to_string(c.row_tokens);
}

// FP32 sums of products of order 1 over rows of up to 2,400 tokens.
TEST(ContextAttention, EqualsTheReferenceForRandomPacksInFp32) {
  double worst = 0;
  for (const Case& c : random_cases(NumberFormat::fp32)) {
    const Data data = random_data(c, 3);
    const Result expected = reference(c, data), got = distributed(c, data);
    const double size = std::max(1.0, expected.gradient.abs().max().item<double>());
    EXPECT_LT(largest_difference(got.output, expected.output), 1e-5) << describe(c);
    EXPECT_LT(largest_difference(got.gradient, expected.gradient), 1e-5 * size) << describe(c);
    worst = std::max({worst, largest_difference(got.output, expected.output),
                      largest_difference(got.gradient, expected.gradient) / size});
  }
  std::cout << "largest error against fp64: " << worst << "\n";
}

// Against one rank that computes the same documents in the same precision: inputs are rounded alike in both.
TEST(ContextAttention, HasAtMostTwiceTheErrorOfOneRankInBf16) {
  double worst = 0;
  for (const Case& c : random_cases(NumberFormat::bf16)) {
    Data data = random_data(c, 4);
    data.qkv = data.qkv.to(at::kBFloat16).to(at::kDouble);
    data.dy = data.dy.to(at::kBFloat16).to(at::kDouble);
    Case alone = c;
    alone.ulysses = alone.ring = 1;
    const Result expected = reference(c, data), got = distributed(c, data), one = distributed(alone, data);
    const auto check = [&](const at::Tensor& a, const at::Tensor& b, const at::Tensor& x, const char* what) {
      const double error = largest_difference(a, x), of_one = largest_difference(b, x);
      EXPECT_LE(error, 2.0 * of_one) << what << ", " << describe(c);
      worst = std::max(worst, error / of_one);
    };
    const std::int64_t q = c.heads * kHeadDim, kv = c.kv_heads * kHeadDim;
    const auto columns = [&](const Result& r, std::int64_t first, std::int64_t width) {
      return r.gradient.narrow(1, first, width);
    };
    check(got.output, one.output, expected.output, "output");
    check(columns(got, 0, q), columns(one, 0, q), columns(expected, 0, q), "queries");
    check(columns(got, q, kv), columns(one, q, kv), columns(expected, q, kv), "keys");
    check(columns(got, q + kv, kv), columns(one, q + kv, kv), columns(expected, q + kv, kv), "values");
  }
  std::cout << "largest error / error of one rank in bf16: " << worst << "\n";
}

Case mixed_case(Placement placement, Degrees degrees = {2, 4}) {
  Case c;
  c.ulysses = degrees.ulysses;
  c.ring = degrees.ring;
  c.heads = 8;
  c.kv_heads = 2;
  c.rows = 2;
  c.row_tokens = 384;
  c.lengths = {{100, 37, 160, 5, 60}, {1, 200, 1, 90, 90}};  // the first row ends in 22 tokens of padding
  c.placement = placement;
  return c;
}

TEST(ContextAttention, ADocumentDoesNotChangeASingleBitOfAnother) {
  for (const Placement placement : kPlacements) {
    const Case c = mixed_case(placement);
    const Data data = random_data(c, 5);
    Data changed{data.qkv.clone(), data.dy.clone()};
    changed.qkv.narrow(0, 137, 160).add_(1.0);  // the third document of the first row
    changed.dy.narrow(0, 137, 160).mul_(2.0);
    const Result before = distributed(c, data), after = distributed(c, changed);
    for (const auto& [first, count] : {std::pair{0, 137}, std::pair{297, 384 + 87}}) {
      EXPECT_TRUE(at::equal(before.output.narrow(0, first, count), after.output.narrow(0, first, count)));
      EXPECT_TRUE(at::equal(before.gradient.narrow(0, first, count), after.gradient.narrow(0, first, count)));
    }
    EXPECT_FALSE(at::equal(before.output, after.output));
  }
}

TEST(ContextAttention, AWholeRowIsContaminatedByEarlierDocuments) {
  Case c = mixed_case(Placement::zigzag);
  c.scope = AttentionScope::whole_row;
  const Data data = random_data(c, 6);
  Data changed{data.qkv.clone(), data.dy};
  changed.qkv.narrow(0, 0, 100).add_(1.0);  // the first document
  const Result before = distributed(c, data), after = distributed(c, changed);
  EXPECT_GT(largest_difference(before.output.narrow(0, 100, 284), after.output.narrow(0, 100, 284)), 1e-3);
  EXPECT_TRUE(at::equal(before.output.narrow(0, 384, 384), after.output.narrow(0, 384, 384)));  // another row
  EXPECT_LT(largest_difference(before.output, reference(c, data).output), 1e-5);
}

TEST(ContextAttention, PaddingSeesNothingAndGetsNoGradient) {
  const Case c = mixed_case(Placement::balanced);
  const Result result = distributed(c, random_data(c, 7));
  EXPECT_EQ(result.output.narrow(0, 362, 22).abs().max().item<double>(), 0.0);
  EXPECT_EQ(result.gradient.narrow(0, 362, 22).abs().max().item<double>(), 0.0);
}

TEST(ContextAttention, SendsWhatTheTransferPlanSays) {
  for (const NumberFormat compute : {NumberFormat::fp32, NumberFormat::bf16})
    for (const Placement placement : kPlacements)
      for (const Degrees degrees : {Degrees{1, 4}, Degrees{2, 4}, Degrees{1, 3}, Degrees{1, 8}}) {
        Case c = mixed_case(placement, degrees);
        c.compute = compute;
        const Plan plan = plan_of(c);
        distributed(c, random_data(c, 8), [&](ContextRank& rank) {
          RingMessages sent;
          for (const auto& share : rank.shares()) {
            sent += ring_messages(plan, share->transfers.sends());
          }
          EXPECT_EQ(rank.counted_keys(), (std::pair{2 * sent.key_calls, 2 * sent.key_bytes.value})) << describe(c);
          EXPECT_EQ(rank.counted_gradients(), (std::pair{sent.gradient_calls, sent.gradient_bytes.value}))
              << describe(c);
        });
      }
}

TEST(ContextAttention, DocumentsAlignedWithRankBordersMoveNothing) {
  Case c = mixed_case(Placement::contiguous, {1, 4});
  c.lengths = {{96, 96, 96, 96}, {96, 40, 56, 96, 50, 46}};
  distributed(c, random_data(c, 9), [&](ContextRank& rank) {
    EXPECT_EQ(rank.counted_keys(), (std::pair<std::int64_t, std::int64_t>{0, 0}));
    EXPECT_EQ(rank.counted_gradients(), (std::pair<std::int64_t, std::int64_t>{0, 0}));
  });
}

}  // namespace
}  // namespace reckon
