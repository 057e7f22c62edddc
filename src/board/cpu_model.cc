// SPDX-License-Identifier: BSD-3-Clause
#include "board/cpu_model.hh"

#include "schema/config_reader.hh"

namespace moscope {

x86::CpuModel read_cpu_model(const ConfigReader &from) {
    x86::CpuModel model;
    model.description = from.get<std::string>("description");
    model.max_basic = from.get<std::uint32_t>("max_basic");
    model.max_extended = from.get<std::uint32_t>("max_extended");
    for (const ConfigReader &l : from.at("leaves").list()) {
        const auto word = [&](const char *name) { return l.get<std::uint32_t>(name); };
        model.leaves[{word("function"), word("index")}] = {word("eax"), word("ebx"), word("ecx"), word("edx")};
    }
    for (const ConfigReader &m : from.at("msrs").list())
        model.msrs[m.get<std::uint32_t>("number")] = {m.get<std::uint64_t>("reset"), m.get<std::uint64_t>("writable")};
    return model;
}

x86::CpuModel parse_cpu_model(const std::string &text) {
    const auto j = ConfigReader::parse(text, "cpu", "a processor model as the machine descriptions give it");
    return read_cpu_model({j, "cpu"});
}

} // namespace moscope
