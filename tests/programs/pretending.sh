#!/bin/sh
# A program that is slower without LD_PRELOAD than with it, or the other way round ("slower"), by far; "equal" takes the same time.
# What else it does is said by its second argument.
case $1 in
    faster) with=0.3 without=1.5 ;;
    slower) with=1.5 without=0.3 ;;
    *) with=0 without=0 ;;
esac
if [ -n "$LD_PRELOAD" ]; then side=with time=$with; else side=without time=$without; fi
case $2 in
    sides) echo "result $side" ;;
    lines) if [ $side = with ]; then printf 'b\na\n'; else printf 'a\nb\n'; fi ;;
    fails) if [ $side = with ]; then echo "about to fail" >&2; exit 3; fi ;;
    fails-always) echo "no input"; exit 4 ;;
    phases) if [ $side = with ]; then echo "solve: 1.5 s, read: 3 s"; else echo "solve: 3.0 s, read: 3 s"; fi ;;
esac
exec sleep "$time"
