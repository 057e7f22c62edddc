// SPDX-License-Identifier: BSD-3-Clause
module planted

go 1.19
