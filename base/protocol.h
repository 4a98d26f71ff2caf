#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace espalier {

// The version of what service, agents, replicas and clients say to one another: the messages of
// tuner/proto and their meaning. A release that changes the meaning of anything that its
// predecessor says raises kProtocol; it goes on speaking its predecessor's, so that machines are
// upgraded one after the other. New fields that may be ignored need no new version. What each
// release said is recorded in tests/protocol and understood for as long as it is spoken.
inline constexpr int kProtocol = 1;
inline constexpr int kOldestProtocol = 1;

// The most of a trial's output that the service asks an agent for at a time, and that an agent
// sends. A later release may only raise it with kProtocol.
inline constexpr std::int64_t kMaxTrialOutput_bytes = 1 << 20;

// How a replica ends that cannot use the GPU of its slot: that is the slot's fault, and nothing
// else of its trial's is tried there for a while.
inline constexpr int kSlotAtFaultExitCode = 76;

// Set where an agent starts a program in C++ only to fork it into replicas, at the point where it
// makes its Trial (control/fork_point.h). What it prints until then goes to memory of this name.
inline constexpr const char* kZygoteVariable = "ESPALIER_ZYGOTE";
inline constexpr const char* kZygoteOutput = "espalier-zygote-output";

// In the environment of what an agent starts: the address at which other machines reach this one,
// and the interface that has it. No interface: the address is of this machine alone.
inline constexpr const char* kHostAddressVariable = "ESPALIER_HOST_ADDRESS";
inline constexpr const char* kInterfaceVariable = "ESPALIER_INTERFACE";

// In the environment of a trial that is started again: the last step that it has told a value of.
// Absent: it has told none.
inline constexpr const char* kLastStepVariable = "ESPALIER_LAST_STEP";

// In the environment of a clone: what its program's seed is made of, in place of its number. A
// study's own "env" may say so of all trials.
inline constexpr const char* kSeedVariable = "ESPALIER_SEED";

// In the environment of a trial's first process, which may use all slots that its trial holds on
// the node: the GPU and the threads of its own slot. Making a Trial limits the process to them.
// Absent: it has no others.
inline constexpr const char* kOwnGpuVariable = "ESPALIER_OWN_GPU";
inline constexpr const char* kOwnThreadsVariable = "ESPALIER_OWN_THREADS";

// The end of a replica's output that an agent sends with its exit, and the most that the service
// keeps of it.
inline constexpr std::size_t kMaxLastOutput_bytes = 4096;

// This release, as `tuner version` prints it.
std::string Release();

// One end of a conversation, as it describes itself. An end that says nothing speaks the first
// version.
struct Speaker {
  std::string name;  // for messages: "agent n1", "this service"
  int newest = 1;
  int oldest = 1;
  std::string release{};  // empty: it does not say
};

// This program, under the name that it has in the conversation.
Speaker ThisSpeaker(const std::string& name);

// What this program says of itself where a text is needed: newest, oldest and release, as in
// "2 1 0.2.0". Calls carry it under kProtocolHeader, replicas find their agent's in
// kProtocolVariable.
inline constexpr const char* kProtocolHeader = "espalier-protocol";
inline constexpr const char* kProtocolVariable = "ESPALIER_PROTOCOL";
std::string ProtocolText();
// Fails where the text is none such. What a later release adds to it is passed over.
absl::StatusOr<Speaker> SpeakerFrom(const std::string& name, const std::string& text);

// The newest version that both speak. FAILED_PRECONDITION where there is none, with both, and which
// of the two is to be upgraded.
absl::StatusOr<int> AgreeOnProtocol(const Speaker& other, const Speaker& self);

}  // namespace espalier
