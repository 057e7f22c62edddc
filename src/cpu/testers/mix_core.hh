// SPDX-License-Identifier: BSD-3-Clause
// A fiber core that mixes hits and misses: private data, read-shared data, contended words, pauses, accesses
// in flight while others hit. A hash of all values read shows any difference between two runs. Tests that
// compare runs use it. Ticks are femtoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.hh"
#include "cpu/fiber_core.hh"
#include "cpu/testers/increment.hh"

namespace moscope::testers {

struct MixParams {
    unsigned steps = 2000;
    std::uint64_t seed = 1;
    std::uint64_t private_bytes = 2048, shared_bytes = 4096;
};

class MixCore : public FiberCore {
  public:
    MixCore(EventQueue &queue, unsigned number, Port &port, Addr private_base, Addr shared_base, MixParams p)
        : FiberCore(queue, "mix core " + std::to_string(number), port),
          p_(p),
          rng_(p.seed * 1009 + number),
          private_(private_base),
          shared_(shared_base) {}

    std::uint64_t hash() const { return hash_; }
    Tick finished_at() const { return finished_at_; }

  protected:
    void body() override {
        for (unsigned i = 0; i < p_.steps; ++i)
            step();
        finished_at_ = now();
    }

  private:
    PhysAddr word(Addr base, std::uint64_t bytes) { return PhysAddr(base + 8 * rng_.below(bytes / 8)); }
    void read(PhysAddr a) {
        std::uint64_t v = 0;
        load(a, &v, 8);
        mix(v);
    }
    void mix(std::uint64_t v) { hash_ = (hash_ ^ v ^ static_cast<std::uint64_t>(now())) * 0x9e3779b97f4a7c15ull; }

    void step() {
        const std::uint64_t v = rng_.next();
        switch (rng_.below(16)) {
        case 0: store(word(shared_, p_.shared_bytes), &v, 8); break;
        case 1:
        case 2: read(word(shared_, p_.shared_bytes)); break;
        case 3: rmw(word(shared_, 128), 8, [&](void *b) { mix(increment(b)); }); break;
        case 4: delay(1 + static_cast<std::int64_t>(rng_.below(40))); break;
        case 5: { // a miss under which private data is read
            Access x;
            std::uint64_t got = 0;
            x.addr = word(shared_, p_.shared_bytes);
            x.size = 8;
            x.data = &got;
            start_access(x);
            for (unsigned n = static_cast<unsigned>(rng_.below(6)); n; --n)
                read(word(private_, p_.private_bytes));
            wait_for(x);
            mix(got);
            break;
        }
        case 6:
        case 7:
        case 8:
        case 9: store(word(private_, p_.private_bytes), &v, 8); break;
        default: read(word(private_, p_.private_bytes));
        }
    }

    MixParams p_;
    Rng rng_;
    Addr private_, shared_;
    std::uint64_t hash_ = 0;
    Tick finished_at_ = 0;
};

} // namespace moscope::testers
