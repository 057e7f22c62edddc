// SPDX-License-Identifier: BSD-3-Clause
#include "board/cpu_model.hh"

#include <nlohmann/json.hpp>

#include "base/error.hh"

namespace moscope {

using nlohmann::json;

x86::CpuModel parse_cpu_model(const std::string &text) {
    x86::CpuModel model;
    try {
        const json j = json::parse(text);
        model.description = j.at("description").get<std::string>();
        model.max_basic = j.at("max_basic").get<std::uint32_t>();
        model.max_extended = j.at("max_extended").get<std::uint32_t>();
        for (const json &l : j.at("leaves")) {
            const auto word = [&](const char *name) { return l.at(name).get<std::uint32_t>(); };
            model.leaves[{word("function"), word("index")}] = {word("eax"), word("ebx"), word("ecx"), word("edx")};
        }
        for (const json &m : j.at("msrs"))
            model.msrs[m.at("number").get<std::uint32_t>()] = {m.at("reset").get<std::uint64_t>(),
                                                               m.at("writable").get<std::uint64_t>()};
    } catch (const json::exception &e) {
        throw UserError(std::string("cpu: ") + e.what() +
                        ": expected a processor model as the machine descriptions give it");
    }
    return model;
}

} // namespace moscope
