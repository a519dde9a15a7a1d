#include "runtime/train/input/sentence_pieces.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>

#include "plan/errors.h"
#include "runtime/train/input/token_stream.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

/// A model of 60 pieces, trained here on the text that it then cuts.
class SentencePieces : public testing::Test {
 protected:
  SentencePieces() {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the ship sails by dead reckoning\nspeed and heading give the place\n";
    data_ = folder_.write("data/log.txt", text);
    model_ = folder_.path() / "pieces.model";
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        "--minloglevel=2 --vocab_size=60 --hard_vocab_limit=false --input=" + data_.string() +
        " --model_prefix=" + (folder_.path() / "pieces").string());
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

  TemporaryFolder folder_;
  std::filesystem::path data_, model_;
};

TEST_F(SentencePieces, JoinToTheTextAgainAndEndWithTheModelsMark) {
  const auto source = open_sentence_pieces(data_.parent_path(), model_);
  ASSERT_EQ(source->documents(), 1);
  const std::vector<std::int32_t> tokens = source->read_all(0);
  sentencepiece::SentencePieceProcessor processor;
  ASSERT_TRUE(processor.Load(model_.string()).ok());
  EXPECT_EQ(source->vocabulary(), processor.GetPieceSize());
  EXPECT_EQ(tokens.back(), processor.eos_id());
  EXPECT_LT(tokens.size(), std::filesystem::file_size(data_));  // a piece is longer than a byte on the whole
  std::string joined;
  ASSERT_TRUE(processor.Decode(std::vector<int>(tokens.begin(), tokens.end() - 1), &joined).ok());
  EXPECT_EQ(joined.substr(0, 65), "the ship sails by dead reckoning speed and heading give the place");
}

TEST_F(SentencePieces, AreWhatATrainingRowIsMadeOf) {
  Plan plan;
  plan.model.vocabulary = 64;
  plan.batch.sequence_length = 16;
  plan.train.data = data_.string();
  plan.train.tokenizer = model_.string();
  std::vector<std::int32_t> row(17);
  TokenStream(plan).read(0, 0, row);
  const auto all = open_sentence_pieces(data_, model_)->read_all(0);
  EXPECT_NE(std::search(all.begin(), all.end(), row.begin(), row.end()), all.end());
  plan.model.vocabulary = 8;
  EXPECT_THROW(TokenStream{plan}, ConfigError);  // pieces outside the model's vocabulary
}

TEST_F(SentencePieces, AFileThatIsNoModelIsNamed) {
  try {
    open_sentence_pieces(data_, data_);
    FAIL() << "a text was read as a model";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.diagnostics().front().key, "train.tokenizer");
    EXPECT_EQ(error.diagnostics().front().file, data_.string());
  }
}

}  // namespace
}  // namespace reckon
