#include "plan/document_lengths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "plan/counter_random.h"
#include "plan/errors.h"

namespace reckon {
namespace {

using Lengths = std::vector<std::int64_t>;

TEST(CounterRandom, BitsAreTheSameEverywhere) {
  // computed with whole numbers of any size in another language
  EXPECT_EQ(random_bits(1, 0), 0x5e41ab087439611eull);
  EXPECT_EQ(random_bits(1, 1), 0xf18d6ce93d6cf1eeull);
  EXPECT_EQ(random_bits(7, 123456), 0x8d53fd3d289a1e14ull);
}

TEST(CounterRandom, InverseNormalAgreesWithAnotherImplementation) {
  // statistics.NormalDist().inv_cdf of Python 3.11
  const std::pair<double, double> known[] = {{1e-300, -37.0470962993612}, {1e-20, -9.262340089798405},
                                             {1e-3, -3.090232306167813},  {0.025, -1.9599639845400538},
                                             {0.2, -0.8416212335729142},  {0.5, 0.0},
                                             {0.7, 0.5244005127080407},   {0.999, 3.090232306167813}};
  for (const auto& [p, z] : known) EXPECT_NEAR(inverse_normal(p), z, 1e-14 * std::max(1.0, std::fabs(z))) << p;
}

TEST(CounterRandom, ExpAndLogAgreeWithTheLibrary) {
  for (double x = -700; x < 700; x += 0.37) EXPECT_NEAR(portable_exp(x) / std::exp(x), 1.0, 1e-15) << x;
  for (double x = 1e-300; x < 1e300; x *= 1.7)
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-15 * std::fabs(std::log(x)) + 1e-16) << x;
}

TEST(DocumentLengths, FineWebLengthsAreTheSameEverywhere) {
  const LengthSource fineweb("fineweb", 1, 1);  // first values computed in another language
  EXPECT_EQ(fineweb.lengths(0, 12), (Lengths{281, 2114, 68, 892, 177, 882, 561, 195, 151, 193, 543, 1852}));
  EXPECT_EQ(fineweb.lengths(3, 2), (Lengths{892, 177}));
}

TEST(DocumentLengths, WikipediaHasTheQuantilesThatWereMeasured) {
  // median 305, 95th percentile 2,464 and mean 692 were seen; the log-normal stand-in has 2,505 at the 95th.
  Lengths lengths = LengthSource("wikipedia", 1, 3).lengths(0, 100000);
  const double mean = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})) / 1e5;
  std::sort(lengths.begin(), lengths.end());
  EXPECT_NEAR(static_cast<double>(lengths[50000]), 305, 5);    // standard error of the median about 1.6
  EXPECT_NEAR(static_cast<double>(lengths[95000]), 2505, 60);  // about 21
  EXPECT_NEAR(mean, 692, 18);                                  // about 4.5
}

TEST(DocumentLengths, EveryDistributionKeepsItsMeanAndClip) {
  for (const LengthDistribution& distribution : length_distributions()) {
    const Lengths lengths = LengthSource(std::string(distribution.name), 1, 11).lengths(0, 200000);
    const double mean = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})) / 2e5;
    if (distribution.clip == 0) {  // 5 standard errors: sqrt((exp(sigma^2) - 1) / n)
      const double error = std::sqrt((std::exp(distribution.sigma * distribution.sigma) - 1) / 2e5);
      EXPECT_NEAR(mean / mean_length(distribution), 1.0, 5 * error + 0.002) << distribution.name;
    } else {
      EXPECT_EQ(*std::max_element(lengths.begin(), lengths.end()), distribution.clip);
    }
    EXPECT_GE(*std::min_element(lengths.begin(), lengths.end()), 1);
  }
}

TEST(DocumentLengths, MixtureHasItsTokenShares) {
  // 5 % of the tokens are books; nearly all documents over 20,000 tokens are books or arXiv papers.
  const Lengths lengths = LengthSource("mixed", 1, 5).lengths(0, 400000);
  double tokens = 0, in_long = 0;
  for (const std::int64_t length : lengths) {
    tokens += static_cast<double>(length);
    if (length > 50000) in_long += static_cast<double>(length);
  }
  // books over 50,000 tokens hold Phi((mu + sigma^2 - ln 50000) / sigma) = Phi(1.224) = 89 % of the books' tokens; code
  // over 50,000 adds Phi(-1.65) = 5 % of 20 %, arXiv Phi(-1.33) = 9 % of 10 %.
  EXPECT_NEAR(in_long / tokens, 0.05 * 0.89 + 0.20 * 0.05 + 0.10 * 0.09, 0.02);
}

TEST(DocumentLengths, SingleDocumentsFillRows) {
  EXPECT_EQ(LengthSource("single", 4096, 1).lengths(7, 2), (Lengths{4096, 4096}));
}

TEST(DocumentLengths, LengthsHoldingStopsWithTheDocumentThatReachesTheCount) {
  EXPECT_EQ(LengthSource("fineweb", 1, 1).lengths_holding(281 + 2114 + 1), (Lengths{281, 2114, 68}));
}

TEST(DocumentLengths, FilesOfLengthsAreReadAndStartAgain) {
  const auto file = std::filesystem::path(testing::TempDir()) / ("reckon-" + std::to_string(::getpid()) + ".lengths");
  std::ofstream(file) << "# three documents\n10\n\n 20 # the second\n5\n";
  EXPECT_EQ(LengthSource(file.string(), 1, 1).lengths(0, 5), (Lengths{10, 20, 5, 10, 20}));
  std::ofstream(file) << "10\n-3\n";
  try {
    read_lengths(file);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(":2:1: a document of -3 tokens"), std::string::npos) << error.what();
  }
  std::ofstream(file) << "# nothing\n";
  EXPECT_THROW(read_lengths(file), ConfigError);
  std::filesystem::remove(file);
}

TEST(DocumentLengths, UnknownNameSuggestsTheNearest) {
  try {
    LengthSource("finweb", 1, 1);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'fineweb'?"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace reckon
