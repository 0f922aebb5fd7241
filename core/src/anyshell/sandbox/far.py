"""The shell text that runs on the far side of a sandbox: how commands start, are logged, looked at and ended there.

It is plain POSIX sh (tried with dash, bash and busybox) and needs `grep`, `dd`, `head`, `tail`, `stat`, `base64`, `mkdir`,
`rm`, `sleep`, `cat` and a Linux /proc. Every name begins with `_as_`, so that a variable of the sandbox is not changed by
accident; an exported one would be visible to the command.

What a request sets before it calls a function:

    _as_d   the owner's private directory          _as_n   the command's name
    _as_k   its mark                               _as_w   its working directory
    _as_e   shell text that sets its variables     _as_v   the program that gives it a session, or nothing
    _as_s   its shell, _as_f that shell's options  _as_p   what the shell runs, _as_a its name, _as_l the line
    _as_i   'null', 'line' (the line is too long for an argument and comes on standard input) or 'fifo'
    _as_b   bytes in one read of the log's writer, _as_q reads between two looks at the log, _as_g bytes in a segment

The files of command N in the private directory: `N.o.*` and `N.e.*`, the segments of its logs, named 10^15 plus the
offset of their first byte so that they sort; `N.o.z` and `N.e.z` when a log is complete; `N.x` with the exit code (or
'gone': the working directory was not there; 'lost': it ended unseen); `N.t` when it was ended, perhaps before it began;
`N.i`, its standard input. `t` stands for all of the owner's commands.

A kept shell has more descriptors: 5 is its input, where a request comes from and whose end means that the connection is
gone; 6 and 7 are the two streams of the connection; 9 is its hold on `life`, whose end tells the far side's keeper.
"""

from __future__ import annotations

LIBRARY = r"""
set +ef
_as_mark() { ulimit -S -x "$1" || ulimit -S -w "$1"; } 2>/dev/null
_as_nap() { sleep 0.02 2>/dev/null || sleep 1; }
_as_size() { stat -c %s "$1" 2>/dev/null || stat -f %z "$1" 2>/dev/null || echo 0; }
_as_pids() {
for _as_f in $(grep -ls "^Max file locks  *$1 " /proc/[0-9]*/limits); do
_as_f=${_as_f%/*}
read -r _as_x <"$_as_f/stat" || continue
case ${_as_x##*) } in Z*|X*) continue;; esac
"$2" "${_as_f#/proc/}" ${_as_x##*) }
done 2>/dev/null
}
_as_pid() { echo "$1"; }
_as_aim() {
if [ "$4" -le 1 ] || [ "$5" = "$_as_session" ]; then echo "$1"; return; fi
case $_as_seen in *" $4 "*) return;; esac
_as_seen="$_as_seen$4 "
echo "-$4"
}
_as_sig() {
_as_r=1
_as_seen=' '
for _as_f in $(_as_pids "$2" _as_aim); do
_as_r=0
kill "-$1" "$_as_f"
done 2>/dev/null
return $_as_r
}
_as_now() {
read -r _as_u _as_x </proc/uptime
_as_u=${_as_u%.*}
} 2>/dev/null
_as_own() { _as_session=$4; }
_as_end() {
_as_u=0
_as_now
read -r _as_x <"/proc/$$/stat"
_as_own ${_as_x##*) }
_as_until=$((_as_u+2+$2/50))
if _as_sig TERM "$1"; then
_as_sig CONT "$1"
_as_y=$2
while [ "$_as_y" -gt 0 ] && [ "$_as_u" -lt "$_as_until" ] && [ -n "$(_as_pids "$1" _as_pid)" ]; do
_as_nap
_as_y=$((_as_y-1))
_as_now
done
fi
_as_until=$((_as_u+5))
_as_y=0
_as_c=0
while [ "$_as_c" -lt 2 ] && [ "$_as_y" -lt 200 ] && [ "$_as_u" -lt "$_as_until" ]; do
_as_y=$((_as_y+1))
if _as_sig KILL "$1"; then _as_c=0; _as_nap; else _as_c=$((_as_c+1)); fi
_as_now
done
}
_as_bg() {
(
read -r _as_x _as_y </proc/self/stat
{ exec </dev/null >/dev/null 2>&1; "$@"; } | kill -s PIPE "$_as_x"
)
:
}
_as_exec() {
(
_as_mark "$_as_k"
[ -d "$_as_d" ] && [ ! -e "$_as_d/$_as_n.t" ] && [ ! -e "$_as_d/t" ] || exit 143
eval "$_as_e"
exec 2>&8 8>&-
exec $_as_v "$_as_s" $_as_f -c "$_as_p" "$_as_a" "$@"
)
}
_as_cmd() {
exec 8>&3 3>&- 2>/dev/null 5<&- 6>&- 7>&- 9>&-
if [ ! -d "$_as_d" ]; then
_as_x=lost
elif cd -- "$_as_w"; then
unset OLDPWD
case $_as_i in
line) printf '%s' "$_as_l" | _as_exec;;
fifo) _as_exec "$_as_l" <>"$_as_d/$_as_n.i";;
*) _as_exec "$_as_l" </dev/null;;
esac
_as_x=$?
else
_as_x=gone
fi
}
_as_run() {
_as_cmd
printf '%s\n' "$_as_x" >"$_as_d/$_as_n.x"
}
_as_job() {
{ { _as_run | _as_log "$_as_d/$_as_n.o"; } 3>&1 | _as_log "$_as_d/$_as_n.e"; }
}
_as_begin() {
if (cd -- "$_as_w") 2>/dev/null; then _as_bg _as_job
else
echo gone >"$_as_d/$_as_n.x"
: >"$_as_d/$_as_n.v"
fi
}
_as_log() {
exec 3>&-
umask 077
_as_t=1000000000000000
_as_o=
while :; do
_as_r=$(LC_ALL=C dd bs="$_as_b" count="$_as_q" 2>&1 >>"$1.$_as_t") || break
_as_r=${_as_r%%" records in"*}
_as_r=${_as_r##*[!0-9+]}
[ "$((${_as_r:-0}))" -eq "$_as_q" ] || break
_as_y=$(_as_size "$1.$_as_t")
[ "$_as_y" -ge "$_as_g" ] || continue
_as_o="$_as_o $_as_t"
_as_t=$((_as_t+_as_y))
set -- "$1" $_as_o
if [ $# -gt 7 ]; then
rm -f "$1.$2"
_as_o=${_as_o# }
_as_o=" ${_as_o#* }"
fi
done
: >"$1.z"
exec cat >/dev/null
}
_as_total() {
_as_h=
_as_t=0
for _as_f in "$1".1???????????????; do
[ -e "$_as_f" ] || continue
_as_s=$((${_as_f##*.}-1000000000000000))
_as_h=${_as_h:-$_as_s}
_as_t=$((_as_s+$(_as_size "$_as_f")))
done
_as_h=${_as_h:-0}
}
_as_part() {
_as_at=$2
_as_y=$3
for _as_f in "$1".1???????????????; do
[ -e "$_as_f" ] && [ "$_as_y" -gt 0 ] || continue
_as_s=$((${_as_f##*.}-1000000000000000))
_as_c=$((_as_s+$(_as_size "$_as_f")))
[ "$_as_c" -gt "$_as_at" ] || continue
[ "$_as_at" -ge "$_as_s" ] || _as_at=$_as_s
_as_c=$((_as_c-_as_at))
[ "$_as_c" -le "$_as_y" ] || _as_c=$_as_y
tail -c "+$((_as_at-_as_s+1))" "$_as_f" | head -c "$_as_c"
_as_at=$((_as_at+_as_c))
_as_y=$((_as_y-_as_c))
done
}
_as_show() {
_as_total "$_as_d/$1"
_as_m=$2
[ "$_as_m" != tail ] || _as_m=$((_as_t-$3))
[ "$_as_m" -ge "$_as_h" ] || _as_m=$_as_h
printf '%s %s\n' "$_as_m" "$_as_t"
if [ "$_as_t" -gt "$_as_m" ]; then _as_part "$_as_d/$1" "$_as_m" "$3" | base64; fi
echo .
}
_as_wait() {
_as_j=$2
while [ ! -s "$_as_d/$1.x" ]; do
if [ "$3" != tail ]; then
_as_total "$_as_d/$1.o"
[ "$_as_t" -le "$3" ] || return 0
_as_total "$_as_d/$1.e"
[ "$_as_t" -le "$4" ] || return 0
fi
[ "$_as_j" -gt 0 ] && [ -d "$_as_d" ] || return 0
_as_j=$((_as_j-1))
_as_nap
done
_as_j=0
_as_c=0
_as_m=
while [ "$_as_j" -lt 5 ] && [ "$_as_c" -lt 100 ] && [ ! -e "$_as_d/$1.v" ]; do
if [ -e "$_as_d/$1.o.z" ] && [ -e "$_as_d/$1.e.z" ]; then break; fi
_as_total "$_as_d/$1.o"
_as_y=$_as_t
_as_total "$_as_d/$1.e"
[ "$_as_m" = "$_as_y $_as_t" ] || _as_j=0
_as_m="$_as_y $_as_t"
_as_j=$((_as_j+1))
_as_c=$((_as_c+1))
_as_nap
done
: >"$_as_d/$1.v"
}
_as_look() {
_as_wait "$1" "$2" "$3" "$4"
_as_x=
if [ ! -d "$_as_d" ]; then _as_x=lost
elif [ -s "$_as_d/$1.x" ]; then read -r _as_x <"$_as_d/$1.x"; fi
printf 'state %s\n' "$_as_x"
_as_show "$1.o" "$3" "$5"
_as_show "$1.e" "$4" "$5"
}
_as_alive() {
if [ ! -s "$_as_d/$1.x" ] && [ -z "$(_as_pids "$2" _as_pid)" ]; then
_as_nap
_as_nap
[ -s "$_as_d/$1.x" ] || echo lost >"$_as_d/$1.x"
fi 2>/dev/null
}
_as_tmp() {
for _as_t in "${TMPDIR:-}" /tmp /var/tmp /dev/shm; do
if [ -n "$_as_t" ] && [ -d "$_as_t" ] && [ -w "$_as_t" ]; then return; fi
done
}
_as_hello() {
command -v bash
echo .
command -v setsid
echo .
printf '%s\n' "${BASH_VERSION:+bash}"
_as_tmp
printf '%s\0%s\0' "$(pwd && echo .)" "$_as_t" | base64
echo .
{ cat /proc/self/environ 2>/dev/null || env -0; } | base64
echo .
if [ -r /proc/self/limits ] && ( _as_mark 4000000000000000000 ); then echo linux; fi
}
"""

KEPT = r"""
_as_pump() {
exec >&"$1" 3>&- 5<&- 6>&- 7>&- 9>&-
cat || exec cat >/dev/null
}
_as_held() {
_as_cmd
kill "$_as_u"
printf '%s %s\n' "$_as_z" "$_as_x"
printf '%s %s\n' "$_as_z" "$_as_x" >&8
}
_as_attached() {
_as_z=$1
{ read -r _as_x <&5 || { trap '' TERM; _as_end "$_as_k" 20; }; } </dev/null 6>&- 7>&- 9>&- &
_as_u=$!
{ { _as_held | _as_pump 6; } 3>&1 | _as_pump 7; }
wait "$_as_u"
printf '%s ready\n' "$_as_z" >&6
}
_as_call() {
( eval "$2" ) </dev/null >&6 5<&- 6>&- 7>&- 9>&-
printf '%s ready\n' "$1" >&6
}
_as_over() {
for _as_d in "$_as_h"/anyshell-*; do
[ -s "$_as_d/owner" ] || continue
: >"$_as_d/t"
read -r _as_o <"$_as_d/owner"
_as_end "$_as_o" 20
done
rm -rf "$_as_h"
}
_as_keep() {
_as_y=0
while [ "$_as_y" -lt "$1" ]; do
sleep 1
[ -p "$_as_h/life" ] || exit
exec 7<>"$_as_h/life" 6<"$_as_h/life" 7>&-
if [ -n "$(cat <&6)" ]; then _as_y=0; else _as_y=$((_as_y+1)); fi
[ -p "$_as_h/life" ] || exit
done
_as_over
}
_as_lane() {
exec <"$1" >"$2" 2>"$3"
exec sh
}
_as_pour() {
exec <"$1" >"$2" 2>"$3"
printf '%s hello\n' "$4" >&2
eval "$5"
}
_as_connect() {
_as_tmp
_as_h=$_as_t/anyshell-$1
( umask 077; if mkdir "$_as_h"; then mkfifo "$_as_h/life"; _as_bg _as_keep "$2"; fi )
_as_y=0
while [ ! -p "$_as_h/life" ] && [ "$_as_y" -lt 100 ]; do _as_nap; _as_y=$((_as_y+1)); done
exec 9<>"$_as_h/life"
echo >&9
}
"""
# What only a kept shell needs. Its own standard output and error go nowhere, since a shell writes there what no command
# said, such as "Terminated". The background part of `_as_attached` waits for the connection to end: nobody can wait for
# the command any more then, so it is ended, by a process that must outlive the command. The part that waits for `life` to have no writer opens it for both first,
# since opening for reading alone waits for a writer.

# `_as_end` signals whole groups: the kernel does that at once, so that no process gets away by forking, and each hears of
# it once. What is of the kept shell's own session is signalled one by one. Every round is bounded by time as well, since one takes long on a far side that
# is busy with a fork bomb.

# `_as_log` has `dd` read `_as_q` times and takes fewer records for the end. It reads on whatever happens (a full disk, a
# `dd` that says something else), so that no command stalls or gets SIGPIPE because its log can't grow. GNU `dd` warns of
# partial reads before it says how many records there were.

# `_as_bg` starts a process that nobody waits for without "&", which would have it and all its children ignore SIGINT: the
# left side of a pipeline runs with the signals as they are, and the right side ends the shell that waits for both.


def rates(max_log_bytes: int) -> str:
    """How a log's writer reads and cuts, so that seven segments and what is read between two looks stay in bounds."""
    segment = max(max_log_bytes // 10, 4096)
    block = min(65536, segment // 4)
    return f'_as_b={block} _as_q={max(1, segment // 4 // block)} _as_g={segment}'
