#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Errors that can happen travel as absl::Status. A message names the thing, the value and what
// would be right: search space "lr": loguniform needs low > 0, got 0.
#define ESPALIER_RETURN_IF_ERROR(expression)                                \
  do {                                                                      \
    if (absl::Status espalier_status = (expression); !espalier_status.ok()) \
      return espalier_status;                                               \
  } while (false)

#define ESPALIER_CONCAT_INNER(a, b) a##b
#define ESPALIER_CONCAT(a, b) ESPALIER_CONCAT_INNER(a, b)
#define ESPALIER_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                            \
  if (!result.ok()) return std::move(result).status();                   \
  declaration = std::move(result).value()
// ESPALIER_ASSIGN_OR_RETURN(const Study study, FindStudy(name));
#define ESPALIER_ASSIGN_OR_RETURN(declaration, expression)                                  \
  ESPALIER_ASSIGN_OR_RETURN_INNER(ESPALIER_CONCAT(espalier_result_, __LINE__), declaration, \
                                  expression)
