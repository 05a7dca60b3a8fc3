// MASKWISE_DUMP writes valid JSON for any bytes in names and any numbers in attributes.

#include "cpp_client.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

namespace maskwise::contract {
namespace {

namespace fs = std::filesystem;

class dump : public testing::Test {
protected:
    void SetUp() override {
        std::string path = (fs::temp_directory_path() / "maskwise-dump-XXXXXX").string();
        ASSERT_NE(mkdtemp(path.data()), nullptr);
        folder_ = path;
        setenv("MASKWISE_DUMP", folder_.c_str(), 1);
    }
    void TearDown() override {
        unsetenv("MASKWISE_DUMP");
        fs::remove_all(folder_);
    }

    // Returns the dumped graph's operators. Throws if the file is missing or is not strict JSON.
    nlohmann::json operators() const {
        const fs::directory_iterator files(folder_);
        if (begin(files) == end(files)) throw std::runtime_error("no file was written");
        std::ifstream file(files->path());
        return nlohmann::json::parse(file).at("graph");
    }

private:
    fs::path folder_;
};

op named_select(const std::string& name) {
    const extents shape{4, 8};
    return {1,
            kind::Select,
            {dense(0, shape, boolean), dense(1, shape), dense(2, shape)},
            {dense(3, shape)},
            name};
}

TEST_F(dump, names_may_be_any_bytes) {
    std::string name, characters;
    for (int byte = 1; byte < 256; ++byte) {
        name += static_cast<char>(byte);
        if (byte >= 0x80) characters += static_cast<char>(0xc0 | byte >> 6);
        characters += static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
    }
    partitions_of({named_select(name)});
    EXPECT_EQ(operators().at(0).at("name"), characters);
}

TEST_F(dump, numbers_may_be_infinite_or_nan) {
    const float infinity = std::numeric_limits<float>::infinity();
    op clamp{2, kind::Clamp, {dense(3, {4, 8})}, {dense(4, {4, 8})}, "clamp"};
    clamp.set_attr(op::attr::min, std::nanf("")).set_attr(op::attr::max, infinity);
    partitions_of({named_select("select"), clamp});
    for (const auto& each : operators()) {
        if (each.at("kind") != "Clamp") continue;
        EXPECT_TRUE(each.at("attrs").at("min").at("value").is_null()) << each;
        EXPECT_EQ(each.at("attrs").at("max").at("value").get<float>(), infinity) << each;
        return;
    }
    FAIL() << "no Clamp in " << operators();
}

} // namespace
} // namespace maskwise::contract
