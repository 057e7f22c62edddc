# SPDX-License-Identifier: BSD-3-Clause
"""Symbols of C++, Rust and Fortran become the names of their sources; symbols of other languages stay as they are."""

import pytest

from moscope.naming import demangle

FUNCTIONS = {
    "main": "main", "_start": "_start", "_Zbad": "_Zbad", "_ZN": "_ZN", "work.constprop.0": "work",
    "_ZN3app4Pool4pushEi": "app::Pool::push", "_Z3fooi.isra.0": "foo", "_Z1fIiEvT_": "f<int>",
    "_ZNK3app4PoolclEi": "app::Pool::operator()", "_ZN3appeqERKNS_4PoolES2_": "app::operator==",
    "_ZN3app4PoolcvbEv": "app::Pool::operator bool", "_ZN12_GLOBAL__N_14workEv": "(anonymous namespace)::work",
    "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE": "core::fmt::Formatter::pad",
    "_ZN54_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$app..Stat$GT$4tick17h0123456789abcdefE": "<alloc::vec::Vec<T> as app::Stat>::tick",
    "_RNvC6_123foo3bar": "123foo::bar",
    "work.part.0.cold": "work", "work.cold.3": "work", "work.isra.0.lto_priv.0": "work.lto_priv.0", "work.llvm.8401": "work",
    "_ZN55_$LT$demo..part..Pool$u20$as$u20$core..clone..Clone$GT$5clone17h0123456789abcdefE":
        "<demo::part::Pool as core::clone::Clone>::clone",
    "sort.partialInsertionSort": "sort.partialInsertionSort", "main.part.func1": "main.part.func1", "main.coldStart": "main.coldStart",
    "__gm_MOD_poke": "gm::poke", "__gm_MOD_poke.constprop.0": "gm::poke", "__MOD_poke": "__MOD_poke",
}


@pytest.mark.parametrize("symbol", FUNCTIONS)
def test_a_function_has_its_qualified_name_without_parameters(symbol: str) -> None:
    assert demangle.function(symbol) == FUNCTIONS[symbol]


def test_a_variable_of_a_function_keeps_the_function_with_its_parameters() -> None:
    assert demangle.variable("_ZZN3app4Pool4pushEiE5calls") == "app::Pool::push(int)::calls"


def test_a_functions_name_has_no_version_of_its_library() -> None:
    assert demangle.function("pthread_mutex_lock@@GLIBC_2.2.5") == "pthread_mutex_lock"
    assert demangle.function("memcpy@GLIBC_2.2.5") == "memcpy"
