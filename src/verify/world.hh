// SPDX-License-Identifier: BSD-3-Clause
// Choices that the model leaves open (is an array full, which line leaves, what a core does next): the code of a rule
// asks, and the exploration answers. A rule runs once for each sequence of answers.
#pragma once

#include <vector>

#include "verify/values.hh"

namespace moscope::verify {

class World {
  public:
    /// Before the first run of a rule.
    void begin() { answers_.clear(), next_ = 0, memo_.clear(); }
    /// Before each further run: the next sequence of answers. False: all have been given.
    bool advance() {
        while (!answers_.empty() && answers_.back().given + 1u >= answers_.back().of)
            answers_.pop_back();
        if (answers_.empty())
            return false;
        ++answers_.back().given;
        next_ = 0;
        memo_.clear();
        return true;
    }
    /// A number below n; over all runs of the rule, each of these numbers in turn.
    unsigned choose(unsigned n) {
        if (n <= 1)
            return 0;
        if (next_ == answers_.size())
            answers_.push_back({0, static_cast<std::uint8_t>(n)});
        return answers_[next_++].given;
    }
    /// The same for a question about an array. A rule that asks again gets the same answer, until the array changes.
    unsigned choose(unsigned n, const void *array, Addr a, bool victim) {
        for (const Memo &m : memo_)
            if (m.array == array && m.a == a && m.victim == victim)
                return m.answer;
        const unsigned answer = choose(n);
        memo_.push_back({array, a, victim, static_cast<std::uint8_t>(answer)});
        return answer;
    }
    void changed(const void *array) {
        std::erase_if(memo_, [array](const Memo &m) { return m.array == array; });
    }

  private:
    struct Answer {
        std::uint8_t given, of;
    };
    struct Memo {
        const void *array;
        Addr a;
        bool victim;
        std::uint8_t answer;
    };
    std::vector<Answer> answers_;
    std::size_t next_ = 0;
    std::vector<Memo> memo_;
};

inline World &world() {
    static thread_local World w;
    return w;
}

} // namespace moscope::verify
