#pragma once

#include <string>

namespace espalier {

std::string HostName();

// How other machines may call this one: by its name, if that leads to more than this machine alone;
// Debian lists it in /etc/hosts as 127.0.1.1. Else the address from which this machine reaches
// others, with brackets if it is IPv6; else the name all the same.
std::string NameForOtherMachines();

// The same where the machine has this name.
std::string NameForOtherMachines(const std::string& name);

}  // namespace espalier
