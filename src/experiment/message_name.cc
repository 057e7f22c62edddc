// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/message_name.hh"

#include "mem/ruby/runtime/requests.hh"

namespace moscope::experiment {

std::string structure_of_message(const ruby::ProtocolInfo &protocol, std::uint16_t type) {
    if (type < protocol.message_types)
        return protocol.message_type[type];
    return type == ruby::RubyRequest::kType ? "RubyRequest"
           : type == ruby::MemoryMsg::kType ? "MemoryMsg"
                                            : "SequencerMsg";
}

std::string name_in(const std::string &fields, const std::string &otherwise) {
    std::size_t at = fields.find("Type=");
    while (at != std::string::npos && at != 0 && fields[at - 1] != ' ')
        at = fields.find("Type=", at + 1);
    if (at == std::string::npos)
        return otherwise;
    const std::size_t from = at + 5;
    return fields.substr(from, fields.find(',', from) - from);
}

std::string name_of_message(const ruby::ProtocolInfo &protocol, const ruby::Message &m) {
    return name_in(protocol.describe(m), structure_of_message(protocol, m.type));
}

} // namespace moscope::experiment
