// SPDX-License-Identifier: BSD-3-Clause
// A library that the server is started with (LD_PRELOAD): each seek to the end of a file, by which the server asks for its size,
// is done kTimes, so that a query seeks several times in each of two files. The MOSBENCH paper (section 5.5) says "many times per query
// on the same two files"; the number is not known, and kTimes is the least that makes several.
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kTimes = 2 };

static long seek(int file, long offset, int whence) {
    long at;
    __asm__ volatile("syscall" : "=a"(at) : "a"((long)SYS_lseek), "D"((long)file), "S"(offset), "d"((long)whence) : "rcx", "r11", "memory");
    return at;
}

long lseek64(int file, long offset, int whence);
long lseek64(int file, long offset, int whence) {
    for (int i = 1; whence == SEEK_END && i < kTimes; ++i)
        seek(file, offset, whence);
    const long at = seek(file, offset, whence);
    if (at >= 0 || at < -4095)
        return at;
    errno = (int)-at;
    return -1;
}
off_t lseek(int, off_t, int) __attribute__((alias("lseek64")));
