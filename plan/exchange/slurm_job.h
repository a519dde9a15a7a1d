// What the `#SBATCH` lines of a job script ask for, and the variables that Slurm then sets for the script
// (slurm.schedmd.com/sbatch.html, "output environment variables").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace reckon {

struct SlurmRequest {
  std::string option;  // by its long name: "--nodes"; "--gres=gpu" for devices
  std::string value;   // "true" where there is none; of devices the number alone
};

class SlurmJob {
 public:
  /// A comment `#SBATCH --nodes=4` or `#SBATCH -N 4`; nothing when it is another one.
  std::optional<SlurmRequest> read(std::string_view comment);

  /// The text of SLURM_NNODES and the like, where the lines read so far decide it.
  std::optional<std::string> variable(std::string_view name) const;

 private:
  std::optional<std::string> asked(std::string_view option) const;

  std::map<std::string, std::string, std::less<>> requests_;
};

}  // namespace reckon
