// SPDX-License-Identifier: BSD-3-Clause

//go:build mended

package main

type counter struct {
	served int64
	_      [56]byte
}

//go:noinline
func (c *counter) spare() {}
