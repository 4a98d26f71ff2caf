#pragma once

namespace espalier {

// std::visit(Overloaded{[](const A&) ..., [](const B&) ...}, variant): one case each, or no build.
template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace espalier
