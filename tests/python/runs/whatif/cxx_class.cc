// SPDX-License-Identifier: BSD-3-Clause
// Planted: objects of a C++ class, each with an atomic counter of its own, lie packed in a table.
#include <atomic>

#include "planted.h"

namespace server {

class
#ifdef MENDED
    alignas(LINE)
#endif
        Worker {
  public:
    void handled() {
        handled_.fetch_add(1, std::memory_order_relaxed); // defect
    }

  private:
    std::atomic<long> handled_{0};
};

Worker workers[MOST] __attribute__((aligned(LINE)));

} // namespace server

static void work(int self) {
    for (;;) {
        server::workers[self].handled();
        compute(50);
        operation_done();
    }
}

int main(int argc, char **argv) { return run(argc, argv, work); }
