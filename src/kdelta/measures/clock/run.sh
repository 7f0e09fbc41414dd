#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Times the programs that lie besides it, and writes what they say into RESULTS. It needs a POSIX shell, cat, cp, mv, rm, grep and cksum.
#
#     sh run.sh           all of it; the last core that may be used
#     CORE=2 sh run.sh    another core
#
# Each process of a link has a fresh copy of its file, so that its code lies in other physical pages, and all links take turns, so that
# what drifts in the machine hits all alike. While another thread of the core is busy the programs wait. BUDGET seconds after the
# beginning none waits any more, and no further turn begins, once there were LEAST of them. Nothing is left over but RESULTS.
cd "$(dirname "$0")" || exit 1
rm -rf work level RESULTS RESULTS.partial

clean() {
    rm -rf work level RESULTS.partial
}
trap 'clean; exit 130' INT HUP TERM

in_time() {
    read -r now rest </proc/uptime
    [ "${now%.*}" -lt "$deadline" ]
}

# Patience is some 3 seconds a process, in probes, and none when the budget is used up.
wait_or_not() {
    PATIENCE=200000
    in_time || PATIENCE=0
    export PATIENCE
}

# How a program ended: killed by a signal counts as well.
timed() {
    "$@" </dev/null
    echo "@status $?"
}

processor() {
    grep '^cpu' /proc/stat
    times
    cat /proc/uptime
}

everything() {
    echo "@results 3"
    echo "@manifest"
    cat manifest.json
    echo "@facts"
    : >level
    timed ./facts $CORE
    core=$CORE
    [ -n "$core" ] || core=$(./facts 2>/dev/null | while read -r name value; do [ "$name" = core ] && echo "$value"; done)
    echo "@machine"
    cat /proc/sys/kernel/osrelease
    cat /proc/sys/kernel/arch 2>/dev/null || echo unknown
    cat /proc/device-tree/model 2>/dev/null
    echo
    echo "@cpuinfo"
    cat /proc/cpuinfo
    echo "@load"
    cat /proc/loadavg
    echo "@processor"
    processor
    if [ -n "$core" ]; then
        process=1
        while [ "$process" -le "$PROCESSES" ] && { [ "$process" -le "$LEAST" ] || in_time; }; do
            echo "round $process of $PROCESSES" >&2
            while read -r name code links arguments; do
                rm -rf work
                cp -r "links/$code" work || return 1
                seed=1
                while [ "$seed" -le "$links" ]; do
                    echo "@run $name $seed $process"
                    wait_or_not
                    timed "./work/$seed" time "$core" "$ROUNDS" "$WARM" $arguments
                    seed=$((seed + 1))
                done
            done <plan
            process=$((process + 1))
        done
    fi
    echo "@processor"
    processor
    echo "@level"
    cat level
    echo "@end"
}

. ./settings
read -r now rest </proc/uptime
deadline=$((${now%.*} + BUDGET))
everything >RESULTS.partial || { echo "run.sh: no space, or a file is missing" >&2; clean; exit 1; }
rm -rf work level
cksum <RESULTS.partial >>RESULTS.partial
mv RESULTS.partial RESULTS
