// Results as text for a person: compact tables that fit one screen. Memory is in GiB (2^30); everything else names its
// unit. The same facts unrounded: profile_json.h, compare_profiles.h, result_json.h.
#pragma once

#include <string>

#include "plan/step_profile.h"
#include "report/compare_profiles.h"
#include "report/table.h"

namespace reckon {

/// "llama2-70b on 128 x A100-SXM4-80GB".
std::string profile_title(const StepProfile& profile);

/// "data 2 x pipeline 8 x tensor 8, ZeRO-1; 256 micro-batches of 1 x 4096 tokens a replica, bf16".
std::string plan_degrees(const StepProfile& profile);

/// Model, machine, degrees and batch in two or three lines.
std::string plan_summary(const StepProfile& profile);

/// "the plan does not fit: needs 41.2 GiB of 40.0 GiB on rank 0; ..."
std::string verdict_sentence(const Verdict& verdict);

/// Verdict, memory by stage, time by component, throughput, traffic.
std::string profile_text(const StepProfile& profile, const TextStyle& style);

/// Totals, time, memory and traffic: predicted beside measured with the signed error, and what is to blame.
std::string comparison_text(const ProfileComparison& comparison, const TextStyle& style);

}  // namespace reckon
