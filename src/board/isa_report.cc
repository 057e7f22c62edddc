// SPDX-License-Identifier: BSD-3-Clause
#include "board/isa_report.hh"

#include <nlohmann/json.hpp>

#include "board/cpu_model.hh"
#include "cpu/x86/decode/isa.hh"

namespace moscope {

std::string isa_report(const std::string &cpu_json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const x86::IsaRow &r : x86::isa_table(parse_cpu_model(cpu_json)))
        rows.push_back({{"mnemonic", r.mnemonic},
                        {"set", r.set},
                        {"feature", r.feature},
                        {"group", r.group},
                        {"promised", r.promised},
                        {"forms", r.forms},
                        {"compared", r.compared},
                        {"apart", r.apart},
                        {"lacking", r.lacking}});
    return rows.dump();
}

} // namespace moscope
