#pragma once

#include <string>

namespace espalier {

// The value of an environment variable; empty where it is unset. Not while another thread sets one.
std::string EnvironmentVariable(const char* name);

// The variable in which a trial's program finds a parameter of that name: "learning rate" ->
// ESPALIER_PARAM_LEARNING_RATE. Pure.
std::string ParameterVariable(const std::string& name);

}  // namespace espalier
