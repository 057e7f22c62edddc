// SPDX-License-Identifier: BSD-3-Clause
// SLICC's TriggerQueue: a list of what a controller or a transaction still has to do. An item blocks those behind it
// (`push`) or does not (`pushNB`); `frontNB` and `backNB` return which of the two holds for the item at either end.
#pragma once

#include <deque>
#include <utility>

#include "base/error.hh"

namespace moscope::ruby {

template <class T> class TriggerQueue {
  public:
    const T &front() const { return at_least_one().front().item; }
    const T &back() const { return at_least_one().back().item; }
    bool frontNB() const { return at_least_one().front().passes; }
    bool backNB() const { return at_least_one().back().passes; }
    T &next() { return const_cast<T &>(front()); }
    bool empty() const { return items_.empty(); }
    void push(const T &item) { items_.push_back({item, false}); }
    void pushNB(const T &item) { items_.push_back({item, true}); }
    void pushFront(const T &item) { items_.push_front({item, false}); }
    void pushFrontNB(const T &item) { items_.push_front({item, true}); }
    void pop() {
        at_least_one();
        items_.pop_front();
    }
    /// The item's fields in their order of declaration.
    template <class... Field> void emplace(Field &&...field) {
        items_.push_back({T(std::forward<Field>(field)...), false});
    }

  private:
    struct Item {
        T item;
        bool passes;
    };
    const std::deque<Item> &at_least_one() const {
        if (items_.empty())
            throw ProtocolError("TriggerQueue: it is empty");
        return items_;
    }
    std::deque<Item> items_;
};

} // namespace moscope::ruby
