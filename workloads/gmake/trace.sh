#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Traces the real build in the guest and prints the numbers of mix.h: of each program, means for one process.
#
#   moscope boot --disk IMAGE --cores 1 --script workloads/gmake/trace.sh
#
# IMAGE is a root image (moscope.guest.rootimage) with gcc, libc6-dev, make and strace, completed by tree.sh.
set -e
cp -a /usr/src/tree /tmp/tree
mkdir /tmp/log
cd /tmp/tree
objects="f1.o f2.o f3.o f4.o f5.o f6.o"
strace -ff -o /tmp/log/p make $objects >/tmp/make.log
strace -ff -o /tmp/log/p ld -r -o /tmp/all.o $objects
cat >/tmp/count.pl <<'P'
my (%n, %of);
for my $file (glob "/tmp/log/p.*") {
    open my $in, "<", $file or die;
    my ($role, %c) = ("make-child");
    while (<$in>) {
        if (/^execve\("([^"]*)".* = 0$/) { ($role) = $1 =~ m{([^/]*)$}; %c = (); next }
        next unless /^(\w+)\((.*) = (-?\w+)(?: (E\w+))?/;
        my ($call, $given, $value, $error) = ($1, $2, $3, $4 // "");
        ++$c{calls};
        if ($error eq "ENOENT") { ++$c{missing} }
        elsif ($call =~ /^(newfstatat|access|readlink|faccessat2?)$/ && $given !~ /AT_EMPTY_PATH/) { ++$c{stats} unless $error }
        elsif ($call eq "openat") { ++$c{opens} unless $error }
        elsif ($call =~ /^p?read(64)?$/) { ++$c{reads}; $c{bytes_read} += $value if $value > 0 }
        elsif ($call =~ /^p?write(64|v)?$/) { ++$c{writes}; $c{bytes_written} += $value if $value > 0 }
        elsif ($call =~ /^(mmap|munmap|brk|mprotect|unlink|lseek|rt_sigaction|close|vfork|clone|clone3|getdents64)$/) { ++$c{$1} }
    }
    ++$n{$role};
    $of{$role}{$_} += $c{$_} for keys %c;
}
for my $role (sort keys %n) {
    printf "trace: %s processes=%d", $role, $n{$role};
    printf " %s=%.1f", $_, $of{$role}{$_} / $n{$role} for sort keys %{$of{$role}};
    print "\n";
}
P
perl /tmp/count.pl
# Page faults and computing of the children of a shell, from /proc.
counted() {
    sh -c "$1 && read -r line </proc/\$\$/stat && set -- \$line && echo trace: $2 faults=\${11} user_ticks=\${16} system_ticks=\${17}"
}
cc1=$(gcc -print-prog-name=cc1)
for n in 3 4; do
    counted "$cc1 -quiet -imultiarch x86_64-linux-gnu f$n.c -O2 -Wall -o /tmp/f.s" cc1
    counted "as --64 -o /tmp/f.o /tmp/f.s" as
    counted "gcc -O2 -Wall -c -o /tmp/f.o f$n.c" gcc_with_both
done
counted "ld -r -o /tmp/all.o $objects" ld
