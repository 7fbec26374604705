#include "operators_of.hpp"

const std::vector<Test::Strategy>& Test::strategies() {
  static const auto all =
      Bracewell::Impl::is_host<Space>
          ? std::vector{Strategy::Automatic, Strategy::Atomic, Strategy::Owned, Strategy::Duplicated}
          : std::vector{Strategy::Automatic, Strategy::Atomic, Strategy::Owned};
  return all;
}
