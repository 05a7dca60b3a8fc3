#pragma once

// A client of the public oneDNN Graph C API that records the result of each call. The transcripts
// with oneDNN alone and with the plugin must be equal, except for the differences listed in
// differences.txt.

#include "support/client/graph_client.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace maskwise::contract {

using namespace test;

class transcript {
public:
    explicit transcript(std::string scenario) : scenario_(std::move(scenario)) {}

    // Writes "<scenario>|<call>|<answer>" and flushes, so that a later crash loses nothing.
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
    const void* data = nullptr; // the scenario's case
};

void add_compile_scenarios(std::vector<scenario>& all);
void add_schema_scenarios(std::vector<scenario>& all);
void add_handle_scenarios(std::vector<scenario>& all);
void add_graph_scenarios(std::vector<scenario>& all);
void add_wrong_scenarios(std::vector<scenario>& all);
void add_attention_scenarios(std::vector<scenario>& all);

// "2x3x4:12s4s1", with "any", "undef" or "opaque" in place of strides; "?" for an unknown extent.
std::string text_of(const logical_tensor& tensor);

} // namespace maskwise::contract
