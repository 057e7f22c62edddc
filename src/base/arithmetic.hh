// SPDX-License-Identifier: BSD-3-Clause
// Checked arithmetic for protocols from outside the project. Operations whose result C++ does not define are errors:
// divisions by 0 and of the smallest number by -1, and shifts by a negative number of bits or by at least the width of the
// number.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace moscope {

template <class Error, class A, class B> void must_divide(A a, B b) {
    using T = decltype(a / b);
    if (__builtin_expect(b == B{}, 0))
        throw Error("division by 0");
    if (std::is_signed_v<T> &&
        __builtin_expect(static_cast<T>(b) == T(-1) && static_cast<T>(a) == std::numeric_limits<T>::min(), 0))
        throw Error("division of " + std::to_string(a) + " by -1: the result is too large for its type");
}
template <class Error, class A, class B> auto checked_quotient(A a, B b) {
    must_divide<Error>(a, b);
    return a / b;
}
template <class Error, class A, class B> auto checked_remainder(A a, B b) {
    must_divide<Error>(a, b);
    return a % b;
}

template <class Error, class A, class B> void must_shift(A, B bits) {
    constexpr int width = std::numeric_limits<std::make_unsigned_t<decltype(A{} << 1)>>::digits;
    if (__builtin_expect(static_cast<std::uint64_t>(bits) >= width, 0)) // also a negative number
        throw Error("shift by " + std::to_string(bits) + " bits: expected 0 to " + std::to_string(width - 1));
}
template <class Error, class A, class B> auto checked_left(A a, B bits) {
    must_shift<Error>(a, bits);
    return a << bits;
}
template <class Error, class A, class B> auto checked_right(A a, B bits) {
    must_shift<Error>(a, bits);
    return a >> bits;
}

} // namespace moscope
