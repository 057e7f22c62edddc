// SPDX-License-Identifier: BSD-3-Clause
// Planted: the counters of goroutines lie packed in a slice of structures. With the tag `mended` each has a line of its own.
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"
)

func workBegin()
func operationDone()

var counters [48]counter
var ready int64

func pin(core int) {
	var set [16]uint64
	set[core/64] = 1 << (core % 64)
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
}

func work(self, all int) {
	runtime.LockOSThread()
	pin(self)
	atomic.AddInt64(&ready, 1)
	for atomic.LoadInt64(&ready) < int64(all) {
		runtime.Gosched()
	}
	if self == 0 {
		workBegin()
	}
	own := &counters[self]
	for n := 0; ; n++ {
		atomic.AddInt64(&own.served, 1) // defect
		for i := 0; i < 50; i++ {
			own.spare()
		}
		operationDone()
	}
}

func main() {
	all, _ := strconv.Atoi(os.Args[1])
	for n := 1; n < all; n++ {
		go work(n, all)
	}
	work(0, all)
}
