#!/bin/sh
# Makes libfarhaul.a of the static library that cargo builds: archive.sh STATIC_LIBRARY FOLDER
#
# One object has what the functions of the header need, a sixth of the size, and no other global name. So a program can be linked
# with other static libraries of Rust as well.
set -eu
here=$(dirname "$0")
object=$2/farhaul.o
functions=$(grep -o '\bfarhaul_[a-z_]*(' "$here/include/farhaul.h" | tr -d '(' | sort -u | sed 's/^/-u /')
# shellcheck disable=SC2086
${LD:-ld} -r --gc-sections $functions -o "$object" "$1"
${OBJCOPY:-objcopy} --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd \
    --wildcard --keep-global-symbol='farhaul_*' "$object"
rm -f "$2/libfarhaul.a"
${AR:-ar} rcs "$2/libfarhaul.a" "$object"
rm "$object"
