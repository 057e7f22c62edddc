// SPDX-License-Identifier: BSD-3-Clause
// The state of a component as a flat sequence of bytes, for checkpoints. One function per component names its
// fields once and serves both directions: `void archive(Archive &a) { a(counter_, period_); }` writes them when
// the archive saves and reads them when it loads. Values are little-endian and of fixed width. Each component
// has a section with its name, so that a file that lacks or reorders something is refused and not misread.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hh"

namespace moscope {

class Archive {
  public:
    /// An archive to write to.
    Archive() = default;
    /// An archive to read from.
    explicit Archive(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)), loading_(true) {}

    bool loading() const { return loading_; }
    bool at_end() const { return position_ == bytes_.size(); }
    const std::vector<std::uint8_t> &bytes() const { return bytes_; }

    /// Begins a component's section. When loading: UserError if the section here has another name.
    void section(std::string_view name) {
        std::string s(name);
        (*this)(s);
        if (s != name)
            throw UserError("checkpoint: holds \"" + s.substr(0, 64) + "\" where \"" + std::string(name) +
                            "\" was due: expected one written by this version for this machine");
    }

    template <class... T> void operator()(T &...fields) { (one(fields), ...); }

    /// `size` raw bytes.
    void raw(void *data, std::size_t size) {
        if (loading_) {
            need(size);
            std::memcpy(data, bytes_.data() + position_, size);
            position_ += size;
        } else {
            const auto *p = static_cast<const std::uint8_t *>(data);
            bytes_.insert(bytes_.end(), p, p + size);
        }
    }

  private:
    template <class T> void one(T &x) {
        if constexpr (requires { x.archive(*this); })
            x.archive(*this);
        else {
            static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
            raw(&x, sizeof x);
        }
    }
    void one(std::string &s) { list(s); }
    template <class T> void one(std::vector<T> &v) { list(v); }
    template <class T> void one(std::deque<T> &v) { list(v); }

    template <class K, class V> void one(std::map<K, V> &m) {
        std::vector<K> keys;
        keys.reserve(m.size());
        for (const auto &[k, v] : m)
            keys.push_back(k);
        list(keys);
        if (loading_)
            m.clear();
        for (const K &k : keys)
            one(m[k]);
    }

    template <class L> void list(L &l) {
        std::uint64_t n = l.size();
        one(n);
        if (loading_) {
            need(n); // each element takes a byte at least: no huge allocation from a damaged length
            l.resize(n);
        }
        for (auto &x : l)
            one(x);
    }
    void need(std::uint64_t size) const {
        if (size > bytes_.size() - position_)
            throw UserError("checkpoint: ends too early: expected the whole file as it was written");
    }

    std::vector<std::uint8_t> bytes_;
    std::size_t position_ = 0;
    bool loading_ = false;
};

} // namespace moscope
