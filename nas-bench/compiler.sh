#!/bin/sh
# compiler.sh WRAPPER LIBRARY STAMP OPTIONS
#
# Finds the compiler wrapper (mpif90 or mpicc) of an MPI library (openmpi or mpich) and writes STAMP if
# anything that matters to a build has changed: the wrapper's name on the first line, then what it
# runs, the compiler's version and the options.
set -u
wrapper=$1 library=$2 stamp=$3 options=$4

case $library in
  openmpi) package=libopenmpi-dev ;;
  mpich) package=libmpich-dev ;;
esac
packages=$package
[ "$wrapper" = mpif90 ] && packages="$package gfortran"

fail() {
  echo "nas-bench: $1" >&2
  exit 1
}

# Whose wrapper a program is; only Open MPI's knows --showme.
library_of() {
  if "$1" --showme:version 2>/dev/null | grep -q 'Open MPI'; then
    echo openmpi
  else
    echo mpich
  fi
}

if command -v "$wrapper.$library" >/dev/null; then
  compiler=$wrapper.$library
elif command -v "$wrapper" >/dev/null; then
  found=$(library_of "$wrapper")
  [ "$found" = "$library" ] ||
    fail "$wrapper.$library is missing and $wrapper belongs to $found; install $packages or use MPI=$found"
  compiler=$wrapper
  echo "nas-bench: $wrapper.$library is missing; using $wrapper" >&2
else
  fail "no $wrapper.$library and no $wrapper found; install them, on Debian: apt-get install $packages"
fi

version=$("$compiler" --version 2>/dev/null | head -n 1)
[ -n "$version" ] || fail "$compiler does not run; install its compiler, on Debian: apt-get install $packages"

mkdir -p "$(dirname "$stamp")" || exit 1
{
  echo "$compiler"
  "$compiler" -show
  echo "$version"
  echo "$options"
} >"$stamp.new"
if cmp -s "$stamp.new" "$stamp"; then
  rm "$stamp.new"
else
  mv "$stamp.new" "$stamp"
fi
