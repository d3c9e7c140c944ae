#!/bin/bash
# Ends, freezes or starts one service of the running lab, for the tests of what happens without it.
#   service.sh NAME stop     TERM, and after 20 s KILL
#   service.sh NAME kill     KILL at once, its children too
#   service.sh NAME freeze   it keeps its sockets and answers nothing
#   service.sh NAME thaw     it goes on
#   service.sh NAME start    as up.sh starts it, or nothing where it runs; does not wait until it answers
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ -d "$LAB/run" ] || die "no lab in $LAB: up.sh"
[ $# = 2 ] || die "usage: service.sh NAME stop|kill|freeze|thaw|start"
signal() { alive "$1" && kill "-$2" -- "-$(cat "$LAB/run/$1.pid")"; } # setsid made it the leader of its group
case $2 in
  stop) stop "$1" ;;
  kill)
    signal "$1" KILL
    while alive "$1"; do sleep 0.02; done
    rm -f "$LAB/run/$1.pid"
    ;;
  freeze) signal "$1" STOP ;;
  thaw) signal "$1" CONT ;;
  start) launch "$1" ;;
  *) die "$2: one of stop, kill, freeze, thaw, start" ;;
esac
