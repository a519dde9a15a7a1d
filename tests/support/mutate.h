// Files as an enemy, a bad disk or a careless editor would leave them. Mutants are a function of their seed, so that a
// failure names the one number that repeats it. RECKON_FUZZ_FACTOR multiplies the rounds of every fuzz test: 1 is a
// minute for all of them, 1000 a night.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/errors.h"

namespace reckon {

using Random = std::mt19937_64;

/// Changes texts of a format; `pieces` are words of it that are worth inserting.
class Mutator {
 public:
  explicit Mutator(std::vector<std::string> pieces = {}) : pieces_(std::move(pieces)) {
    pieces_.insert(pieces_.end(), {"",
                                   " ",
                                   "\n",
                                   "\t",
                                   "\"",
                                   "'",
                                   "\\",
                                   "{",
                                   "}",
                                   "[",
                                   "]",
                                   ",",
                                   ":",
                                   "#",
                                   "=",
                                   "null",
                                   "true",
                                   "auto",
                                   "\xff",
                                   "\xc3",
                                   "\xef\xbb\xbf",
                                   std::string(1, '\0'),
                                   "<script>",
                                   "../../etc/passwd",
                                   std::string(300, '['),
                                   std::string(5000, 'x')});
  }

  /// One to four changes.
  std::string operator()(std::string text, Random& random) const {
    for (auto changes = 1 + random() % 4; changes > 0; --changes) change(text, random);
    return text;
  }

 private:
  static std::size_t below(std::size_t end, Random& random) { return end == 0 ? 0 : random() % end; }

  void change(std::string& text, Random& random) const {
    const std::size_t at = below(text.size(), random), length = std::min<std::size_t>(text.size() - at, random() % 24);
    const std::string& piece = pieces_[below(pieces_.size(), random)];
    switch (random() % 14) {
      case 0: text.erase(at, length); break;
      case 1: text.resize(at); break;  // truncated
      case 2: text.insert(at, piece); break;
      case 3: text.replace(at, length, piece); break;
      case 4: text.insert(below(text.size() + 1, random), text.substr(at, random() % 80)); break;
      case 5: flip_bit(text, at, random); break;
      case 6: set_integer(text, at, random); break;
      case 7: repeat_line(text, at, random() % 3); break;
      case 8: swap_lines(text, at, below(text.size(), random)); break;
      case 9: swap_words(text, at, below(text.size(), random)); break;
      case 10: nest(text, at, random); break;
      default: replace_number(text, at, random); break;  // the fault that is most often believed
    }
  }

  static void flip_bit(std::string& text, std::size_t at, Random& random) {
    if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
  }

  /// Eight bytes of a binary file become a size that nobody has.
  static void set_integer(std::string& text, std::size_t at, Random& random) {
    constexpr std::uint64_t kSizes[] = {0,          1,          255,        1ull << 31, 1ull << 32, 1ull << 40,
                                        1ull << 61, 1ull << 62, ~0ull >> 1, 1ull << 63, ~0ull};
    const std::size_t aligned = random() % 2 == 0 ? at / 8 * 8 : at;
    const std::uint64_t size = kSizes[random() % std::size(kSizes)];
    if (text.size() >= 8) std::memcpy(&text[std::min(aligned, text.size() - 8)], &size, 8);
  }

  static std::pair<std::size_t, std::size_t> line_at(const std::string& text, std::size_t at) {
    const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1, end = text.find('\n', at);
    return {begin, (end == std::string::npos ? text.size() : end + 1) - begin};
  }
  static void repeat_line(std::string& text, std::size_t at, std::size_t times) {  // 0 times removes it
    const auto [begin, length] = line_at(text, at);
    const std::string line = text.substr(begin, length);
    text.erase(begin, length);
    for (std::size_t i = 0; i < times; ++i) text.insert(begin, line);
  }

  static void swap_parts(std::string& text, std::pair<std::size_t, std::size_t> a,
                         std::pair<std::size_t, std::size_t> b) {
    if (a.first > b.first) std::swap(a, b);
    if (a.first + a.second > b.first) return;  // the same one
    const std::string first = text.substr(a.first, a.second), second = text.substr(b.first, b.second);
    text.replace(b.first, b.second, first);
    text.replace(a.first, a.second, second);
  }
  static void swap_lines(std::string& text, std::size_t a, std::size_t b) {
    swap_parts(text, line_at(text, a), line_at(text, b));
  }

  /// Keys, names and numbers change places.
  static void swap_words(std::string& text, std::size_t a, std::size_t b) {
    const auto word_at = [&](std::size_t at) {
      const auto inside = [&](std::size_t i) {
        const unsigned char letter = static_cast<unsigned char>(text[i]);
        return std::isalnum(letter) != 0 || letter == '_' || letter == '.';
      };
      while (at < text.size() && !inside(at)) ++at;
      std::size_t begin = at;
      while (begin > 0 && inside(begin - 1)) --begin;
      while (at < text.size() && inside(at)) ++at;
      return std::pair(begin, at - begin);
    };
    swap_parts(text, word_at(a), word_at(b));
  }

  static void nest(std::string& text, std::size_t at, Random& random) {
    constexpr std::string_view kOpen = "[{(<", kClose = "]})>";
    const std::size_t kind = random() % kOpen.size(), levels = std::size_t{1} << random() % 15;
    const std::size_t end = at + below(text.size() - at + 1, random);
    if (random() % 2 == 0) text.insert(end, std::string(levels, kClose[kind]));
    text.insert(at, std::string(levels, kOpen[kind]));
  }

  static void replace_number(std::string& text, std::size_t at, Random& random) {
    static const std::vector<std::string> kNumbers = {"0",
                                                      "-1",
                                                      "1",
                                                      "0.5",
                                                      "255",
                                                      "65536",
                                                      "2147483647",
                                                      "2147483648",
                                                      "4294967296",
                                                      "1000000000000000000",
                                                      "4611686018427387904",
                                                      "9223372036854775807",
                                                      "9223372036854775808",
                                                      "18446744073709551616",
                                                      "1e18",
                                                      "1e30",
                                                      "1e308",
                                                      "1e400",
                                                      "-1e30",
                                                      "1e-320",
                                                      "nan",
                                                      "NaN",
                                                      ".nan",
                                                      "inf",
                                                      ".inf",
                                                      "-.inf",
                                                      "Infinity",
                                                      "0x7f",
                                                      "1_000",
                                                      "007",
                                                      std::string(400, '9')};
    const std::size_t digit = text.find_first_of("0123456789", at);
    if (digit == std::string::npos) return;
    std::size_t end = digit;
    while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) ++end;
    text.replace(digit, end - digit, kNumbers[random() % kNumbers.size()]);
  }

  std::vector<std::string> pieces_;
};

inline std::uint64_t fuzz_rounds(std::uint64_t rounds) {
  const char* factor = std::getenv("RECKON_FUZZ_FACTOR");
  return factor == nullptr ? rounds : rounds * std::strtoull(factor, nullptr, 10);
}

inline double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A failure is shown with what repeats it.
inline std::string shown(std::uint64_t seed, const std::string& text) {
  return "seed " + std::to_string(seed) + "\n" + text.substr(0, 2000);
}

/// Calls read(mutant, random) for `rounds` mutants of the texts. Each is read, or refused with sentences by an error of
/// the known kinds, at most 5 s of CPU time later; anything else that is thrown fails the test. Some must be read and
/// some refused, else the mutants prove little.
template <class Read>
void fuzz(const std::vector<std::string>& texts, const Mutator& mutator, std::uint64_t rounds, Read read) {
  constexpr double kSlowest = 5.0;
  constexpr long kMostKib = 2 << 20;
  std::uint64_t accepted = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= fuzz_rounds(rounds) && !testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    const std::string text = mutator(texts[random() % texts.size()], random);
    const double start = thread_cpu_seconds();
    try {
      read(text, random);
      ++accepted;
    } catch (const Error& error) {
      ++refused;
      EXPECT_FALSE(error.diagnostics().empty()) << shown(seed, text);
      for (const Diagnostic& one : error.diagnostics())
        EXPECT_NE(one.message.find(' '), std::string::npos) << "no sentence: " << one.message << shown(seed, text);
    } catch (const std::exception& error) {
      ADD_FAILURE() << std::string(error.what()).substr(0, 300) << "\n" << shown(seed, text);
    }
    EXPECT_LT(thread_cpu_seconds() - start, kSlowest) << shown(seed, text);
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, kMostKib) << "KiB of memory";
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(refused, 0u);
}

}  // namespace reckon
