#pragma once

#include <optional>

#include "control.pb.h"
#include "tuner/messages/membership.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

// The mapping between control.proto and what the rest of the tree works with. A test fills every
// field of every message and takes it both ways, so a new field is mapped or the test fails.

v1::ReplicaMessage ToProto(const ReplicaMessage& message);
v1::ReplicaCommand ToProto(const Membership& membership);
v1::ReplicaCommand ToProto(const Adoption& adoption);

// nullopt: the message is for the agent alone (a heartbeat, Parked, Greeting), or of a kind that
// this build does not know.
std::optional<ReplicaMessage> FromProto(const v1::ReplicaMessage& message);
ReplicaReady FromProto(const v1::Ready& ready);
RanksWait FromProto(const v1::RanksWait& wait);
Membership FromProto(const v1::Regroup& regroup);
Adoption FromProto(const v1::Adopt& adopt);

}  // namespace espalier
