#!/bin/sh
# six-runs.sh [RANKS [CLASS [ROUNDS]]]
#
# Times the program pipe in the six settings of figures 4.12 to 4.19 of C.-P. Wen's thesis (1995), by turns, and prints the median of
# each and how much longer it took than the second, beside what the thesis has for 32 processors of a CM-5. MPI=mpich takes MPICH.
# An item has 96 bytes here: 100 items in a message stand for the thesis's 10,000 bytes.
set -eu
cd "$(dirname "$0")"
ranks=${1:-4} class=${2:-W} rounds=${3:-7} library=${MPI:-openmpi}

case $library in
  openmpi) mpirun='mpirun.openmpi --oversubscribe' ;;
  mpich) mpirun=mpirun.mpich ;;
  *) echo "nas-bench: MPI=$library is unknown; use one of: openmpi mpich" >&2; exit 1 ;;
esac
case $rounds in
  '' | *[!0-9]* | 0*) echo "nas-bench: $rounds is no number of rounds; use 1 or more" >&2; exit 1 ;;
esac
# Open MPI refuses to run as root without this.
if [ "$library" = openmpi ] && [ "$(id -u)" = 0 ]; then mpirun="$mpirun --allow-run-as-root"; fi
make --silent pipe MPI="$library" >/dev/null 2>&1 || { make pipe MPI="$library" >&2; exit 1; }

times=$(mktemp -d)
trap 'rm -rf "$times"' EXIT

# settings: number, total time in the thesis in seconds, arguments.
settings() {
  echo '1 433.928 --aggregate 100
2 406.569 --aggregate 10
3 480.787 --aggregate 1
4 307.305 --aggregate 10 --capacity 1000
5 429.008 --aggregate 10 --pipelined
6 354.731 --aggregate 10 --flush'
}

round=0
while [ "$round" -lt "$rounds" ]; do
  round=$((round + 1))
  settings | while read -r number thesis arguments; do
    # shellcheck disable=SC2086 # lists of words
    if ! $mpirun -np "$ranks" bin/pipe --class "$class" $arguments >"$times/output" 2>&1 </dev/null; then
      cat "$times/output" >&2
      exit 1
    fi
    sed -n 's/^ *Time in seconds: *//p' "$times/output" >>"$times/$number"
  done
done

echo "pipe on $ranks ranks, class $class, $library: medians of $rounds rounds by turns, and how they compare with the second"
settings | while read -r number thesis arguments; do
  sort -n "$times/$number" |
    awk -v thesis="$thesis" -v arguments="$arguments" \
      '{ time[NR] = $1 } END { print (time[int((NR + 1) / 2)] + time[int(NR / 2) + 1]) / 2, thesis, arguments }'
done >"$times/medians"
awk 'NR == FNR { if (FNR == 2) { here = $1; there = $2 } next }
  FNR == 1 { printf "%-32s %10s %7s %7s\n", "setting", "seconds", "here", "thesis" }
  { name = $3; for (i = 4; i <= NF; i++) name = name " " $i
    printf "%-32s %10.4f %7.2f %7.2f\n", name, $1, $1 / here, $2 / there }' "$times/medians" "$times/medians"
