#pragma once

#include "adapters/optuna/dashboard/routes.h"
#include "tuner/server/http/dashboard_server.h"

namespace espalier::optuna_dashboard {

// optuna-dashboard's pages and what they ask for (routes.h). What it starts refuses folders that
// Check refuses.
//
// Browsers show the token as the password of any user; programs as "Authorization: Bearer TOKEN".
// Requests that another site's page makes a browser send are refused.
StartDashboard Server(Options options);

}  // namespace espalier::optuna_dashboard
