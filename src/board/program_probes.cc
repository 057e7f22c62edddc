// SPDX-License-Identifier: BSD-3-Clause
#include "board/program_probes.hh"

#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hh"

namespace moscope {

namespace {

constexpr unsigned kPage = x86::Probes::kPageBytes;

using Role = Allocations::Role;
const std::map<std::string, Role> kRoles = {{"begin", Role::begins},        {"malloc", Role::size_first},
                                            {"calloc", Role::product},      {"realloc", Role::reallocation},
                                            {"aligned", Role::size_second}, {"posix_memalign", Role::by_address},
                                            {"free", Role::release}};

x86::Probes::Page read_page(const std::string &file, std::uint64_t at) {
    std::ifstream in(file, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(at));
    std::vector<std::byte> bytes(kPage);
    in.read(reinterpret_cast<char *>(bytes.data()), kPage);
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    if (bytes.empty())
        throw UserError(file + ": cannot be read: expected the program's file");
    return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

} // namespace

ProgramProbes::ProgramProbes(const nlohmann::json &places, const PhysMap &phys)
    : places_(std::make_shared<x86::Probes>(phys)) {
    std::map<std::pair<std::string, std::uint64_t>, x86::Probes::Page> pages;
    for (const auto &from : places) {
        if (from.contains("system_call")) {
            system_calls_.emplace_back(from.at("system_call").get<std::int64_t>());
            count_calls_ = true;
            continue;
        }
        const std::string file = from.at("file"), does = from.at("does");
        const std::uint64_t offset = from.at("offset"), at = offset & ~std::uint64_t{kPage - 1};
        x86::Probes::Page &page = pages[{file, at}];
        if (!page)
            page = read_page(file, at);
        places_->add({page, static_cast<unsigned>(offset - at), does != "see"});
        Each &each = each_.emplace_back();
        each.name = from.at("name");
        each.action = does == "count" ? Action::count : does == "stop" ? Action::stop : Action::none;
        if (const auto role = kRoles.find(does); role != kRoles.end())
            each.role = role->second;
        count_calls_ |= each.action == Action::count;
    }
}

ProgramProbes::Action ProgramProbes::called(x86::Core &c, unsigned probe, const x86::Probed &before) {
    Each &each = each_.at(probe);
    if (each.role)
        allocations_.entered(c, *each.role, probe, before);
    const bool first = each.calls.fetch_add(1, std::memory_order_relaxed) == 0;
    return each.action == Action::stop && !first ? Action::none : each.action;
}

unsigned ProgramProbes::system_called(std::uint64_t number) {
    unsigned operations = 0;
    for (SystemCall &one : system_calls_)
        if (one.number < 0 || static_cast<std::uint64_t>(one.number) == number) {
            one.calls.fetch_add(1, std::memory_order_relaxed);
            ++operations;
        }
    return operations;
}

nlohmann::json ProgramProbes::report() const {
    nlohmann::json out = nlohmann::json::array();
    for (unsigned i = 0; i < each_.size(); ++i)
        out.push_back({{"calls", each_[i].calls.load()}, {"reached", places_->reached(i)}});
    for (const SystemCall &one : system_calls_)
        out.push_back({{"calls", one.calls.load()}, {"reached", one.calls != 0}});
    return out;
}

} // namespace moscope
