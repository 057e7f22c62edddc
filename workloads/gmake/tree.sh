#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tree that the real make and compiler build: /usr/src/tree in the root image. 24 sources, each with a dozen of 40 headers
# and some of the C library's; the program that they are linked to prints a sum, which `expected` holds.
set -e
mkdir -p /usr/src/tree
cd /usr/src/tree
files=24 headers=40 functions=20

h=0
while [ $h -lt $headers ]; do
    {
        echo "#ifndef H$h"
        echo "#define H$h"
        f=0
        while [ $f -lt $functions ]; do
            echo "struct s${h}_$f { unsigned a, b[$((f + 1))]; const char *name; };"
            echo "static inline unsigned h${h}_$f(unsigned x) { return x * $((2 * h + 1)) + $f; }"
            f=$((f + 1))
        done
        echo "#endif"
    } >"h$h.h"
    h=$((h + 1))
done

sum=0 n=0
: >main.c
while [ $n -lt $files ]; do
    {
        printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n'
        i=0 value=$n body=""
        while [ $i -lt 12 ]; do
            h=$(((n * 7 + i * 3) % headers)) f=$(((n + i) % functions))
            echo "#include \"h$h.h\""
            body="$body
    x = h${h}_$f(x);
    for (unsigned i = 0; i < table[$i]; ++i)
        text[i % sizeof text] ^= (char)h${h}_$(((f + 1) % functions))(i);"
            value=$(((value * (2 * h + 1) + f) % 4294967296))
            i=$((i + 1))
        done
        echo "unsigned f$n(unsigned x, const unsigned table[12]);"
        echo "unsigned f$n(unsigned x, const unsigned table[12]) {"
        echo "    char text[64];"
        echo "    memset(text, 0, sizeof text);$body"
        echo "    return x + (strlen(text) > 64);"
        echo "}"
    } >"f$n.c"
    echo "unsigned f$n(unsigned x, const unsigned table[12]);" >>main.c
    sum=$(((sum + value) % 4294967296))
    n=$((n + 1))
done
{
    echo '#include <stdio.h>'
    echo 'int main(void) {'
    echo '    static const unsigned none[12];'
    echo '    unsigned sum = 0;'
    n=0
    while [ $n -lt $files ]; do
        echo "    sum += f$n($n, none);"
        n=$((n + 1))
    done
    printf '    printf("%%u\\n", sum);\n'
    echo '    return 0;'
    echo '}'
} >>main.c
echo $sum >expected
{
    printf 'OBJECTS = main.o'
    n=0
    while [ $n -lt $files ]; do
        printf ' f%d.o' $n
        n=$((n + 1))
    done
    printf '\nCFLAGS = -O2 -Wall\nsum: $(OBJECTS)\n\t$(CC) -o $@ $(OBJECTS)\n$(OBJECTS): $(wildcard *.h)\n'
} >Makefile
