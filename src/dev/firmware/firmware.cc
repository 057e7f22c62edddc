// SPDX-License-Identifier: BSD-3-Clause
#include "dev/firmware/firmware.hh"

#include <algorithm>

namespace moscope::dev {

std::vector<Firmware::Range> Firmware::memory_map() const {
    std::vector<Range> wanted;
    for (const Memory &m : memory)
        wanted.push_back({m.base, m.size, kRam});
    wanted.insert(wanted.end(), reserved.begin(), reserved.end());

    // Between two neighbouring edges the type is constant: of the ranges that cover them, the last in `wanted` wins.
    std::vector<Addr> edges;
    for (const Range &r : wanted) {
        edges.push_back(r.base);
        edges.push_back(r.base + r.size);
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());

    std::vector<Range> map;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        std::uint32_t type = 0;
        for (const Range &r : wanted)
            if (r.base <= edges[i] && edges[i] - r.base < r.size)
                type = r.type;
        if (type == 0)
            continue;
        if (!map.empty() && map.back().type == type && map.back().base + map.back().size == edges[i])
            map.back().size += edges[i + 1] - edges[i];
        else
            map.push_back({edges[i], edges[i + 1] - edges[i], type});
    }
    return map;
}

} // namespace moscope::dev
