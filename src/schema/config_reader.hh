// SPDX-License-Identifier: BSD-3-Clause
// Reads every configuration of the engine: a JSON value and its path, so that an error says
// `dram.timing_fs.tRCD: is missing: expected a time in femtoseconds`. Groups that src/schema describes are read whole
// (`read_group`): their types, names and limits come from the description. Whatever is missing or wrong is a UserError.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hh"

namespace moscope {

class ConfigReader {
  public:
    using json = nlohmann::json;

    /// The value is the caller's and must outlive the reader.
    ConfigReader(const json &value, std::string where) : value_(&value), where_(std::move(where)) {}

    /// UserError if the text is not JSON. `what` says what it should have been.
    static json parse(std::string_view text, const std::string &where, const std::string &what) {
        json j = json::parse(text, nullptr, false);
        if (j.is_discarded())
            ConfigReader(j, where).refuse("is not JSON", what);
        return j;
    }

    const json &value() const { return *value_; }
    const std::string &where() const { return where_; }
    [[noreturn]] void refuse(const std::string &problem, const std::string &expected) const {
        throw UserError(where_ + ": " + problem + ": expected " + expected);
    }

    // --- objects ---

    /// Whether an object has the key with a value other than null.
    bool has(const std::string &key) const { return object().contains(key) && !object().at(key).is_null(); }
    /// The value of a key, which must not be missing or null.
    ConfigReader at(const std::string &key, const std::string &expected = "a value") const {
        if (!has(key))
            ConfigReader(*value_, path(key)).refuse("is missing", expected);
        return {value_->at(key), path(key)};
    }
    template <class T> T get(const std::string &key) const { return at(key, described<T>()).template as<T>(); }
    template <class T> T get_or(const std::string &key, T otherwise) const {
        return has(key) ? ConfigReader(value_->at(key), path(key)).as<T>() : otherwise;
    }
    /// Leaves `out` as it is where the key is missing.
    template <class T> void read(const std::string &key, T &out) const { out = get_or<T>(key, out); }
    /// Calls f(key, ConfigReader) for all keys, in alphabetical order.
    template <class F> void each_key(F &&f) const {
        for (const auto &[key, v] : object().items())
            f(key, ConfigReader(v, path(key)));
    }
    /// Refuses keys that are not among `known`, naming the nearest.
    void only(const std::vector<std::string> &known) const {
        each_key([&](const std::string &key, const ConfigReader &v) {
            if (std::find(known.begin(), known.end(), key) == known.end())
                v.refuse("unknown key", known.empty() ? "no key" : "a known key such as " + nearest(key, known));
        });
    }

    // --- lists ---

    std::vector<ConfigReader> list() const {
        if (!value_->is_array())
            refuse("is not a list", "a list");
        std::vector<ConfigReader> out;
        for (std::size_t i = 0; i < value_->size(); ++i)
            out.emplace_back((*value_)[i], where_ + "[" + std::to_string(i) + "]");
        return out;
    }

    // --- values ---

    /// A truth value, a whole number that fits, a text, or a list of these.
    template <class T> T as() const {
        if constexpr (std::same_as<T, bool>) {
            if (!value_->is_boolean())
                refuse("is not a switch", described<T>());
            return value_->get<bool>();
        } else if constexpr (std::integral<T>) {
            return integer<T>(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
        } else if constexpr (std::same_as<T, std::string>) {
            if (!value_->is_string())
                refuse("is not a string", described<T>());
            return value_->get<std::string>();
        } else {
            T out;
            for (const ConfigReader &v : list())
                out.push_back(v.as<typename T::value_type>());
            return out;
        }
    }
    /// A whole number from `least` to `most`.
    template <std::integral T> T integer(T least, T most) const {
        const std::string range = std::to_string(least) + " to " + std::to_string(most);
        if (!value_->is_number_integer())
            refuse("is not a whole number", range);
        const bool fits = value_->is_number_unsigned() ? std::cmp_greater_equal(value_->get<std::uint64_t>(), least) &&
                                                             std::cmp_less_equal(value_->get<std::uint64_t>(), most)
                                                       : std::cmp_greater_equal(value_->get<std::int64_t>(), least) &&
                                                             std::cmp_less_equal(value_->get<std::int64_t>(), most);
        if (!fits)
            refuse(value_->dump() + " is out of range", range);
        return value_->get<T>();
    }
    /// One of the names of a described enumeration, as its number.
    template <class E, std::size_t kCount> E one_of(const std::array<const char *, kCount> &names) const {
        const auto text = as<std::string>();
        std::string all;
        for (std::size_t i = 0; i < kCount; ++i) {
            if (text == names[i])
                return static_cast<E>(i);
            all += (i ? ", " : "") + std::string(names[i]);
        }
        refuse("\"" + text + "\" is unknown", "one of " + all);
    }

    /// The value of one of these names.
    template <class T, std::size_t kCount> T one_of(const std::pair<const char *, T> (&values)[kCount]) const {
        const auto text = as<std::string>();
        std::string all;
        for (const auto &[name, value] : values) {
            if (text == name)
                return value;
            all += (all.empty() ? "" : ", ") + std::string(name);
        }
        refuse("\"" + text + "\" is unknown", "one of " + all);
    }

  private:
    const json &object() const {
        if (!value_->is_object())
            refuse("is not an object", "an object");
        return *value_;
    }
    std::string path(const std::string &key) const { return where_.empty() ? key : where_ + "." + key; }

    template <class T> static std::string described() {
        if constexpr (std::same_as<T, bool>)
            return "true or false";
        else if constexpr (std::integral<T>)
            return "a whole number";
        else if constexpr (std::same_as<T, std::string>)
            return "a string";
        else
            return "a list";
    }

    static std::string nearest(const std::string &key, const std::vector<std::string> &known) {
        return *std::min_element(known.begin(), known.end(),
                                 [&](const auto &a, const auto &b) { return distance(key, a) < distance(key, b); });
    }
    /// Edits that turn a into b.
    static std::size_t distance(const std::string &a, const std::string &b) {
        std::vector<std::size_t> row(b.size() + 1);
        for (std::size_t j = 0; j <= b.size(); ++j)
            row[j] = j;
        for (std::size_t i = 1; i <= a.size(); ++i) {
            std::size_t diagonal = row[0]++;
            for (std::size_t j = 1; j <= b.size(); ++j) {
                const std::size_t change = diagonal + (a[i - 1] != b[j - 1]);
                diagonal = row[j];
                row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
            }
        }
        return row[b.size()];
    }

    const json *value_;
    std::string where_;
};

/// A group that src/schema describes: known keys only, each within its limits. A key that is missing keeps the default, if
/// it has one. `others`: keys of the same object that the caller reads.
template <class Group> Group read_group(const ConfigReader &from, std::vector<std::string> others = {}) {
    Group out;
    std::vector<std::string> known = std::move(others);
    Group::visit(
        [&]<class T>(const char *name, T &value, auto... limits) {
            known.emplace_back(name);
            if (!from.has(name))
                return;
            if constexpr (sizeof...(limits) == 2)
                value = from.at(name).template integer<T>(limits...);
            else
                value = from.at(name).template as<T>();
        },
        out);
    from.only(known);
    for (const char *name : Group::kRequired)
        from.at(name);
    return out;
}

/// Calls f(name, value, least, most), all as text, for the first number of a group that is not within its limits.
template <class Group, class F> void check_group(const Group &group, F &&f) {
    bool good = true;
    Group::visit(
        [&]<class T>(const char *name, const T &value, auto... limits) {
            if constexpr (sizeof...(limits) == 2)
                [&](T least, T most) {
                    if (good && (value < least || value > most)) {
                        good = false;
                        f(name, std::to_string(value), std::to_string(least), std::to_string(most));
                    }
                }(limits...);
        },
        group);
}

/// The counters of a described set as a JSON object; those by an enumeration as an object of the counts that are not zero.
template <class Json, class Counts> Json counters_json(const Counts &counts) {
    Json out = Json::object();
    Counts::visit(
        [&]<class... Rest>(const char *name, const Rest &...rest) {
            if constexpr (sizeof...(rest) == 1) {
                out[name] = (rest, ...);
            } else {
                Json by = Json::object();
                [&](const auto &names, const auto &values) {
                    for (std::size_t i = 0; i < values.size(); ++i)
                        if (values[i])
                            by[names[i]] = values[i];
                }(rest...);
                out[name] = std::move(by);
            }
        },
        counts);
    return out;
}

} // namespace moscope
