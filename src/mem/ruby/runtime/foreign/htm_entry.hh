// SPDX-License-Identifier: BSD-3-Clause
// A cache entry that knows whether its line is in the read set or the write set of a hardware transaction: the base of
// entries whose protocol declares these methods.
#pragma once

#include "mem/ruby/runtime/cache_entry.hh"

namespace moscope::ruby {

struct HtmCacheEntry : AbstractCacheEntry {
    bool m_in_read_set = false, m_in_write_set = false;

    void setInHtmReadSet(bool v) { m_in_read_set = v; }
    void setInHtmWriteSet(bool v) { m_in_write_set = v; }
    bool getInHtmReadSet() const { return m_in_read_set; }
    bool getInHtmWriteSet() const { return m_in_write_set; }
};

} // namespace moscope::ruby
