// SPDX-License-Identifier: BSD-3-Clause
// Planted: the counters of threads lie packed in a static array. With `--cfg mended` each has a line of its own.
use std::arch::asm;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg_attr(mended, repr(align(64)))]
struct Counter {
    served: AtomicU64,
}

#[repr(align(64))]
struct Table([Counter; 48]);

#[allow(clippy::declare_interior_mutable_const)]
const NEW: Counter = Counter { served: AtomicU64::new(0) };
static COUNTERS: Table = Table([NEW; 48]);
static READY: AtomicUsize = AtomicUsize::new(0);

extern "C" {
    fn sched_setaffinity(process: i32, size: usize, set: *const u64) -> i32;
}

fn work_begin() {
    unsafe { asm!(".byte 0x0f, 0x04, 0x5a, 0x00", inout("rdi") 0u64 => _, inout("rsi") 0u64 => _, out("rax") _, clobber_abi("C")) }
}

fn operation_done() {
    unsafe { asm!(".byte 0x0f, 0x04, 0x5b, 0x00", inout("rdi") 1u64 => _, inout("rsi") 0u64 => _, out("rax") _, clobber_abi("C")) }
}

fn work(own: usize, all: usize) {
    let set = [1u64 << own, 0];
    unsafe { sched_setaffinity(0, 16, set.as_ptr()) };
    READY.fetch_add(1, Ordering::SeqCst);
    while READY.load(Ordering::SeqCst) < all {
        std::thread::yield_now();
    }
    if own == 0 {
        work_begin();
    }
    loop {
        COUNTERS.0[own].served.fetch_add(1, Ordering::Relaxed); // defect
        for _ in 0..50 {
            unsafe { asm!("") };
        }
        operation_done();
    }
}

fn main() {
    let all = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(4);
    for n in 1..all {
        std::thread::spawn(move || work(n, all));
    }
    work(0, all);
}
