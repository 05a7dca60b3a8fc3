#pragma once

// A client of the public oneDNN Graph C API that writes down what each call answers. Run once with
// oneDNN alone and once with the plugin in front, the two transcripts must agree line for line but
// for the differences listed in differences.txt.

#include "oneapi/dnnl/dnnl_graph.h"

#include <cstdint>
#include <string>
#include <vector>

namespace maskwise::contract {

using dims = std::vector<std::int64_t>;
using logical_tensor = dnnl_graph_logical_tensor_t;

class transcript {
public:
    explicit transcript(std::string scenario) : scenario_(std::move(scenario)) {}

    // Writes "<scenario>|<call>|<answer>" at once, so that a crash later loses nothing.
    void note(const std::string& call, const std::string& answer) const;
    void note(const std::string& call, std::int64_t answer) const {
        note(call, std::to_string(answer));
    }
    void status(const std::string& call, dnnl_status_t status) const;

private:
    std::string scenario_;
};

struct scenario {
    std::string name;
    void (*run)(const transcript&, const void* data) = nullptr;
    const void* data = nullptr; // what a table of scenarios passes to one function
};

void add_compile_scenarios(std::vector<scenario>& all);
void add_schema_scenarios(std::vector<scenario>& all);
void add_handle_scenarios(std::vector<scenario>& all);
void add_graph_scenarios(std::vector<scenario>& all);
void add_wrong_scenarios(std::vector<scenario>& all);
void add_attention_scenarios(std::vector<scenario>& all);

// "2x3x4:12s4s1", with "any", "undef" or "opaque" in place of strides; "?" for an open extent.
std::string text_of(const logical_tensor& tensor);

// Element strides without gaps, row-major; an extent of 0 counts as 1.
dims row_major(const dims& extents);

logical_tensor strided(std::size_t id, dnnl_data_type_t type, const dims& extents,
                       const dims& strides);
logical_tensor dense(std::size_t id, dnnl_data_type_t type, const dims& extents);
logical_tensor any_layout(std::size_t id, dnnl_data_type_t type, const dims& extents);
logical_tensor unknown_rank(std::size_t id, dnnl_data_type_t type);

// One engine and stream a process: scenarios run in processes of their own.
dnnl_engine_t cpu_engine();
dnnl_stream_t cpu_stream();

} // namespace maskwise::contract
