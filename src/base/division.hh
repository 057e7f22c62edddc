// SPDX-License-Identifier: BSD-3-Clause
// Division and remainder of numbers that a protocol of a user's computes. C++ does not define those by 0, and of the
// smallest number by -1: both are errors here.
#pragma once

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

} // namespace moscope
