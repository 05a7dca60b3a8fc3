#include "plan/plan_data.hpp"

namespace maskwise {

std::string to_string(const plan& of) {
    return to_string(*of.data_);
}

std::string explain(const plan& of) {
    return to_string(*of.data_) + '\n';
}

} // namespace maskwise
