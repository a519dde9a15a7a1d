#include "cli/commands/reproduce.h"

#include "cli/find_configs.h"
#include "cost_model/reproduce.h"
#include "report/result_json.h"
#include "report/result_text.h"

namespace reckon {

ExitCode reproduce_command(const ReproduceOptions& options, const Output& output) {
  const ConfigPaths paths = find_configs();
  const ReproductionResult result = options.paper == "agoq" ? reproduce_agoq(paths) : reproduce_hsap(paths);
  output.result(output.json() ? reproduction_json(result) : reproduction_text(result, output.style()));
  return ExitCode::success;
}

}  // namespace reckon
