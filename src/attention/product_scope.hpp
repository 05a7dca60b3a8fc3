#pragma once

#include "attention/tile_plan.hpp"

namespace maskwise {

// Lets this thread multiply by a plan's kernels. The destructor restores the thread's state, also
// after an exception.
class product_scope {
public:
    explicit product_scope(const tile_plan& plan)
        : kernels_(*plan.products), enters_(plan.multiplies_by_tiles()) {
        if (enters_) kernels_.begin_products();
    }
    product_scope(const product_scope&) = delete;
    product_scope& operator=(const product_scope&) = delete;
    ~product_scope() {
        if (enters_) kernels_.end_products();
    }

private:
    const attention_kernels& kernels_;
    bool enters_;
};

} // namespace maskwise
