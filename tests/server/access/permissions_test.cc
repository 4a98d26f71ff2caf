// Every call of every frontend is in the one table, and the table has no other.
#include "tuner/server/access/permissions.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "adapters/nni/service/frontend.h"
#include "adapters/optuna/storage_service.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "sessions.pb.h"
#include "slots.pb.h"
#include "storage.pb.h"
#include "tests/api/direct_tuner.h"
#include "tuner.pb.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {
namespace {

void AddMethods(const google::protobuf::FileDescriptor* file, std::set<std::string>& calls) {
  for (int i = 0; i < file->service_count(); ++i) {
    const google::protobuf::ServiceDescriptor* service = file->service(i);
    for (int k = 0; k < service->method_count(); ++k) {
      calls.insert("/" + service->full_name() + "/" + service->method(k)->name());
    }
  }
}

void AddRoutes(const std::vector<HttpRoute>& routes, std::set<std::string>& calls) {
  for (const HttpRoute& route : routes) {
    calls.insert(std::string(route.method) + " " + std::string(route.path));
  }
}

std::set<std::string> AllCalls() {
  std::set<std::string> calls;
  AddMethods(v1::GetStudyRequest::descriptor()->file(), calls);
  AddMethods(v1::AcquireSlotsRequest::descriptor()->file(), calls);
  AddMethods(v1::CreateLoginCodeRequest::descriptor()->file(), calls);
  AddMethods(::optuna::GetTrialRequest::descriptor()->file(), calls);
  AddRoutes(OwnRoutes("", nullptr), calls);
  DirectTuner tuner;
  for (const MakeFrontend& make :
       {MakeFrontend(nni::MakeFrontend), MakeFrontend(optuna_storage::MakeFrontend)}) {
    const std::unique_ptr<Frontend> frontend = make();
    AddRoutes(frontend->Routes(tuner), calls);
  }
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}) {
    calls.insert(std::string("dashboard ") + method);
  }
  return calls;
}

TEST(Permissions, HaveEachMethodAndRouteAndNoOther) {
  const std::set<std::string> calls = AllCalls();
  EXPECT_GT(calls.size(), 70u);
  for (const std::string& call : calls) EXPECT_NE(FindPermission(call), nullptr) << call;
  std::set<std::string> seen;
  for (const Permission& row : Permissions()) {
    EXPECT_TRUE(calls.contains(std::string(row.call))) << row.call << " is no call of any frontend";
    EXPECT_TRUE(seen.insert(std::string(row.call)).second) << row.call << " is there twice";
  }
}

TEST(Permissions, WhatIsNotInTheTableIsNotFound) {
  EXPECT_EQ(FindPermission("/espalier.v1.Tuner/DropAll"), nullptr);
  EXPECT_EQ(FindPermission("GET /api/secret"), nullptr);
  EXPECT_EQ(FindPermission(""), nullptr);
}

TEST(Permissions, OnlyTenPathsAreForEverybody) {
  int open = 0;
  for (const Permission& row : Permissions()) open += row.needed == Role::kNobody ? 1 : 0;
  // The page (three), its files, links, the page that asks for a token (two), health, and NNI's
  // channel, whose URL is the secret.
  EXPECT_EQ(open, 10);
}

TEST(Permissions, TrialsReachOnlyCallsThatNameATrial) {
  for (const Permission& row : Permissions()) {
    if (!row.trial || !row.call.starts_with("/")) continue;
    const std::string call(row.call);
    const auto* method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
        call.substr(1, call.rfind('/') - 1) + "." + call.substr(call.rfind('/') + 1));
    ASSERT_NE(method, nullptr) << call;
    EXPECT_NE(method->input_type()->FindFieldByName("trial_id"), nullptr) << call;
  }
}

}  // namespace
}  // namespace espalier
