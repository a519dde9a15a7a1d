// What rank 0 finds in the calls that ranks announce.
#include "runtime/comm/call_ledger.h"

#include <gtest/gtest.h>

#include "plan/errors.h"

namespace reckon {
namespace {

ConstBufferView floats(std::int64_t count) {
  return {nullptr, count, ElementType::fp32};
}
BufferView room(std::int64_t count) {
  return {nullptr, count, ElementType::fp32};
}

AnnouncedCall all_reduce(int member, std::int64_t number, std::int64_t count) {
  return {"half", member, number, {OperationKind::all_reduce, Reduction::sum, floats(count), room(count), 0, {}, {}}};
}

AnnouncedCall message(bool sends, int member, int peer, std::int64_t number, std::int64_t count) {
  if (sends) return {"half", member, number, {OperationKind::send, Reduction::sum, floats(count), {}, peer, {}, {}}};
  return {"half", member, number, {OperationKind::receive, Reduction::sum, {}, room(count), peer, {}, {}}};
}

/// A group whose members 0 and 1 are ranks 4 and 6 of the world.
CallLedger ledger_of_two() {
  CallLedger ledger;
  ledger.open("half", "tensor", {4, 6});
  return ledger;
}

TEST(CallLedger, EqualCallsAreForgotten) {
  CallLedger ledger = ledger_of_two();
  EXPECT_FALSE(ledger.add(all_reduce(0, 1, 8)));
  EXPECT_FALSE(ledger.add(all_reduce(0, 2, 9)));
  EXPECT_EQ(ledger.open_calls(), 2u);
  EXPECT_FALSE(ledger.add(all_reduce(1, 1, 8)));
  EXPECT_FALSE(ledger.add(all_reduce(1, 2, 9)));
  EXPECT_EQ(ledger.open_calls(), 0u);
}

TEST(CallLedger, NamesBothCallsThatDifferByRanksOfTheWorld) {
  CallLedger ledger = ledger_of_two();
  EXPECT_FALSE(ledger.add(all_reduce(1, 1, 5)));
  EXPECT_EQ(ledger.add(all_reduce(0, 1, 4)),
            "call 1 of group tensor differs: rank 6 called all_reduce (sum) of 5 fp32 elements, rank 4 called "
            "all_reduce (sum) of 4 fp32 elements");
}

TEST(CallLedger, ComparesTablesInBothDirections) {
  const auto exchange = [](int member, std::vector<std::int64_t> out, std::vector<std::int64_t> in) {
    return AnnouncedCall{
        "half",
        member,
        1,
        {OperationKind::all_to_all, Reduction::sum, floats(3), room(3), 0, std::move(out), std::move(in)}};
  };
  CallLedger right = ledger_of_two();
  EXPECT_FALSE(right.add(exchange(0, {1, 2}, {1, 2})));
  EXPECT_FALSE(right.add(exchange(1, {2, 1}, {2, 1})));
  EXPECT_EQ(right.open_calls(), 0u);
  // Member 0 sends 2 elements to member 1, which expects 1.
  CallLedger wrong = ledger_of_two();
  EXPECT_FALSE(wrong.add(exchange(0, {1, 2}, {1, 2})));
  const auto text = wrong.add(exchange(1, {2, 1}, {1, 2}));
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("sends 2 elements to the former, which expects 1"), std::string::npos) << *text;
}

TEST(CallLedger, MessagesMeetWhicheverSideComesFirst) {
  CallLedger ledger = ledger_of_two();
  EXPECT_FALSE(ledger.add(message(true, 0, 1, 1, 4)));
  EXPECT_FALSE(ledger.add(message(false, 1, 0, 1, 4)));
  EXPECT_FALSE(ledger.add(message(false, 1, 0, 2, 3)));
  EXPECT_EQ(ledger.add(message(true, 0, 1, 2, 4)),
            "message 2 from rank 4 to rank 6 in group tensor differs: sent are 4 fp32 elements, rank 6 expects 3 fp32 "
            "elements");
  EXPECT_EQ(ledger.open_calls(), 0u);
}

TEST(CallLedger, SaysWhoIsMissing) {
  CallLedger ledger = ledger_of_two();
  for (std::int64_t number = 1; number <= 3; ++number) EXPECT_FALSE(ledger.add(all_reduce(0, number, 4)));
  EXPECT_FALSE(ledger.add(all_reduce(1, 1, 4)));
  EXPECT_EQ(ledger.overdue(all_reduce(0, 3, 4), 2),
            "call 3 of group tensor: no answer within 2 s to rank 4's all_reduce (sum) of 4 fp32 elements; rank 6 has "
            "not made this call (it has made 1)");
  EXPECT_FALSE(ledger.add(message(false, 1, 0, 1, 4)));
  EXPECT_EQ(ledger.overdue(message(false, 1, 0, 1, 4), 2),
            "message 1 from rank 4 to rank 6 in group tensor: no answer within 2 s to rank 6's receive of 4 fp32 "
            "elements from rank 0; rank 4 has not made its side");
}

TEST(CallLedger, CallsSurviveTheirTripAsBytes) {
  AnnouncedCall call = all_reduce(1, 7, 4);
  call.operation.send_counts = {1, 3};
  const AnnouncedCall back = announced_call(to_bytes(call));
  EXPECT_EQ(back.group, "half");
  EXPECT_EQ(back.number, 7);
  EXPECT_EQ(describe(back.operation), describe(call.operation));
  EXPECT_EQ(back.operation.send_counts, call.operation.send_counts);
  const std::string bytes = to_bytes(call);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW((void)announced_call(std::string_view(bytes).substr(0, length)), RunError) << length;
}

TEST(CallLedger, RefusesMembersThatTheGroupHasNot) {
  CallLedger ledger = ledger_of_two();
  EXPECT_THROW((void)ledger.add(all_reduce(2, 1, 4)), RunError);
  EXPECT_THROW((void)ledger.add({"other", 0, 1, {}}), RunError);
}

}  // namespace
}  // namespace reckon
