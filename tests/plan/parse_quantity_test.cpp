#include "plan/parse_quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "plan/errors.h"

namespace reckon {
namespace {

/// Message of the ConfigError that `call` throws, empty if it throws none.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(ParseQuantity, BinaryAndDecimalSizesDiffer) {
  EXPECT_EQ(parse_bytes("80GiB").value, 80LL << 30);
  EXPECT_EQ(parse_bytes("48 GB").value, 48000000000);
  EXPECT_EQ(parse_bytes("123B").value, 123);
  EXPECT_EQ(parse_bytes("  1.5 MiB ").value, 3 << 19);
  EXPECT_EQ(parse_bytes("1e3 kB").value, 1000000);
  EXPECT_EQ(parse_bytes("9223372036854775807 B").value, INT64_MAX);  // a double would round it up
}

TEST(ParseQuantity, SizesRoundToAWholeByte) {
  EXPECT_EQ(parse_bytes("79.15 GiB").value, 84986665370);  // 79.15 * 2^30 = 84986665369.6
}

TEST(ParseQuantity, DecimalPrefixesGiveTheNearestDouble) {
  EXPECT_EQ(parse_seconds("25us").value, 25e-6);
  EXPECT_EQ(parse_seconds("25 µs").value, 25e-6);
  EXPECT_EQ(parse_seconds("0.3 ms").value, 0.3e-3);
  EXPECT_EQ(parse_seconds("2 min").value, 120);
  EXPECT_EQ(parse_bytes_per_second("900 GB/s").value, 900e9);
  EXPECT_EQ(parse_flops_per_second("312 TFLOP/s").value, 312e12);
  EXPECT_EQ(parse_flops_per_second("1.979 PFLOPS").value, 1979e12);
}

TEST(ParseQuantity, BitsAreEightToAByte) {
  EXPECT_EQ(parse_bytes_per_second("200 Gb/s").value, 25e9);
  EXPECT_EQ(parse_bytes_per_second("400 Gbit/s").value, 50e9);
}

TEST(ParseQuantity, CountsTakePrefixes) {
  EXPECT_EQ(parse_count("64Ki"), 65536);
  EXPECT_EQ(parse_count("10k"), 10000);
  EXPECT_EQ(parse_count("1e6"), 1000000);
  EXPECT_EQ(parse_count("-3"), -3);
  EXPECT_EQ(parse_count("1.5M"), 1500000);
}

TEST(ParseQuantity, ABareNumberWhereAUnitIsNeededIsRefused) {
  EXPECT_NE(refusal([] { parse_bytes("80"); }).find("the unit is missing"), std::string::npos);
  EXPECT_NE(refusal([] { parse_seconds("25"); }).find("the unit is missing"), std::string::npos);
  EXPECT_NE(refusal([] { parse_bytes_per_second("900"); }).find("the unit is missing"), std::string::npos);
  EXPECT_NE(refusal([] { parse_flops_per_second("312"); }).find("the unit is missing"), std::string::npos);
}

TEST(ParseQuantity, AWrongUnitIsNamed) {
  EXPECT_NE(refusal([] { parse_bytes("80G"); }).find("'G' is not a unit of size"), std::string::npos);
  EXPECT_NE(refusal([] { parse_bytes("80 Gb"); }).find("'Gb'"), std::string::npos);
  EXPECT_NE(refusal([] { parse_seconds("3 GiB"); }).find("'GiB' is not a unit of time"), std::string::npos);
  EXPECT_NE(refusal([] { parse_bytes_per_second("900 GB"); }).find("'GB'"), std::string::npos);
}

TEST(ParseQuantity, WhatDoesNotFitIsRefusedNeverWrapped) {
  for (const char* text : {"10000000000 GB", "9223372036854775808 B", "1e400 B", "1e99999999999 B", "-1e30 GiB"}) {
    EXPECT_NE(refusal([&] { parse_bytes(text); }).find("too large"), std::string::npos) << text;
  }
  EXPECT_NE(refusal([] { parse_count("9223372036854775808"); }).find("too large"), std::string::npos);
  EXPECT_NE(refusal([] { parse_count("1e400"); }).find("too large"), std::string::npos);
  EXPECT_NE(refusal([] { parse_number("1e400"); }).find("too large"), std::string::npos);
  EXPECT_NE(refusal([] { parse_seconds("1e308 h"); }).find("too large"), std::string::npos);
}

TEST(ParseQuantity, FractionsOfWholeThingsAreRefused) {
  EXPECT_NE(refusal([] { parse_count("1.5"); }).find("fraction"), std::string::npos);
  EXPECT_NE(refusal([] { parse_bytes("0.3 B"); }).find("less than one byte"), std::string::npos);
}

TEST(ParseQuantity, NonsenseIsRefused) {
  for (const char* text :
       {"", " ", "-", ".", "e5", "nan", "inf", "0x10", "1 2", "1,000", "--1", "1e", "GiB", "1_000"}) {
    EXPECT_FALSE(refusal([&] { parse_count(text); }).empty()) << text;
    EXPECT_FALSE(refusal([&] { parse_bytes(text); }).empty()) << text;
    EXPECT_FALSE(refusal([&] { parse_number(text); }).empty()) << text;
  }
}

TEST(ParseQuantity, VerySmallTimesAreZeroOrExact) {
  EXPECT_EQ(parse_seconds("1e-400 s").value, 0.0);
  EXPECT_EQ(parse_seconds("5e-324 s").value, 5e-324);
}

TEST(WriteQuantity, TheTextIsWhatAPersonWrites) {
  EXPECT_EQ(write_bytes(Bytes(80LL << 30)), "80 GiB");
  EXPECT_EQ(write_bytes(Bytes(40000000)), "40 MB");
  EXPECT_EQ(write_bytes(Bytes(123)), "123 B");
  EXPECT_EQ(write_bytes(Bytes(0)), "0 B");
  EXPECT_EQ(write_seconds(Seconds(25e-6)), "25 us");
  EXPECT_EQ(write_seconds(Seconds(60)), "60 s");
  EXPECT_EQ(write_bytes_per_second(BytesPerSecond(25e9)), "25 GB/s");
  EXPECT_EQ(write_flops_per_second(FlopsPerSecond(989e12)), "989 TFLOP/s");
}

TEST(WriteQuantity, ReadingBackGivesTheSameBits) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-12, 16);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::pow(10.0, exponent(random));
    EXPECT_EQ(parse_seconds(write_seconds(Seconds(value))).value, value);
    EXPECT_EQ(parse_bytes_per_second(write_bytes_per_second(BytesPerSecond(value))).value, value);
    EXPECT_EQ(parse_flops_per_second(write_flops_per_second(FlopsPerSecond(value))).value, value);
    EXPECT_EQ(parse_number(write_number(value)), value);
    const Bytes bytes(static_cast<std::int64_t>(random() >> (random() % 63 + 1)));
    EXPECT_EQ(parse_bytes(write_bytes(bytes)).value, bytes.value);
  }
}

}  // namespace
}  // namespace reckon
