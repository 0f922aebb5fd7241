"""What runs what: a row for each program and each form of its options. `rm` is denied, `ls` is not."""

import re
import time

import pytest

from anyshell.policy import DEFAULT_DENIED_COMMANDS, Decision, Policy
from anyshell.policy.wrappers import PROGRAMS

POLICY = Policy.from_lists(denied_commands=DEFAULT_DENIED_COMMANDS, allow_interactive=True)

# `@` is the command: each row is tried with `rm x`, which is denied, and with `ls x`, which runs.
RUNS = (
    # env
    'env @', 'env -i @', 'env - @', 'env -- @', 'env A=1 B="$x" @', 'env -u HOME @', 'env -uHOME @', 'env -iu HOME @',
    'env --unset HOME @', 'env --unset=HOME @', 'env --uns HOME @', 'env -C / @', 'env --chdir=/ @', 'env --chdir / @', 'env -P /bin @',
    'env -S "@"', "env -S'A=1 @'", 'env -vS "@"', 'env --split-string="@"', 'env --split-string "-i @"', '/usr/bin/env @', 'env env @',
    # Builtins
    'command @', 'command -p @', 'command -- @', 'exec @', 'exec -a n @', 'exec -cla n @', 'exec -- @', 'builtin command @',
    "eval '@'", 'eval @', 'eval -- @', "eval 'true;' @", "trap '@' EXIT", "trap -- '@' 0 INT", "alias z='@'", "mapfile -C '@' -c 1 a",
    "compgen -C '@'", "complete -C '@' y", "PROMPT_COMMAND='@' ls",
    # coreutils and util-linux
    'nohup @', 'nohup -- @', 'nice @', 'nice -n 5 @', 'nice -n5 @', 'nice -5 @', 'nice --5 @', 'nice --adjustment 5 @', 'nice -n -5 @',
    'ionice -c 3 @', 'ionice -c2 -n7 @', 'ionice --class 2 --classdata 4 @', 'ionice -t @', 'timeout 5 @', 'timeout -s KILL 5 @',
    'timeout -sKILL -k3 5 @', 'timeout --signal=KILL --kill-after 1 5s @', 'timeout -v --foreground 5 @', 'timeout -- 5 @',
    'stdbuf -oL @', 'stdbuf -i 0 -e0 @', 'stdbuf --output=L --error L @', 'setsid @', 'setsid -fw @', 'setsid --ctty @',
    '/usr/bin/time @', '/usr/bin/time -v @', 'A=1 time -f %e -o out @', '/usr/bin/time --format=%e -ap @', 'chroot / @',
    'chroot --userspec=a:b / @', 'chroot --groups g / @', 'unshare -Ur @', 'unshare --fork --pid --mount-proc @', 'unshare -R / @',
    'nsenter -t 1 -m @', 'nsenter --target 1 --mount @', 'flock lock @', 'flock -w 5 -E 3 lock @', "flock lock -c '@'", "flock -n lock --command '@'",
    "script -c '@'", "script -qc '@' /dev/null", "script out --command='@'", 'watch @', 'watch -n 1 -d @', 'watch -q 3 @', "watch '@'", 'watch -x @',
    'strace @', 'strace -f -e trace=file -o out -s 99 @', 'strace -a 1 -E A=1 -I 2 -O 3 -p 4 -P f -S time -u me -U x -X raw @',
    'strace --output=f --trace read @', 'ltrace -e malloc @', 'taskset 1 @', 'taskset -c 0,1 @', 'taskset --cpu-list 0 @', 'chrt 5 @', 'chrt -f 5 @',
    'chrt -T 1 -P 2 -D 3 -d 0 @', 'prlimit --nofile=9 @', 'prlimit -n9 --cpu=1 @', 'setarch x86_64 -R @', 'setarch -R @', 'linux64 @', 'linux32 -v @',
    'setpriv --reuid=1 --clear-groups @', 'setpriv --reuid 1 @', 'start-stop-daemon --start --exec @', 'start-stop-daemon -Sa @',
    'uv tool run @', 'bun x @', 'fnm exec @', 'fnm exec --using 20 @', 'corepack pnpm exec @', 'rtx exec -- @', 'nvm exec 20 @', 'nave use lts @', 'n exec --lts @',
    'lockf lock @', 'lockf -t 5 -k lock @', 'xcrun @', 'xcrun --sdk macosx @', 'sops exec-env f "@"', 'sops exec-env --same-process f "@"', 'teller run -- @', 'nc -e "@" h 1', 'ncat --sh-exec "@" h 1', 'netcat -e "@" h 1',
    'systemd-cat @', 'systemd-cat -t tag @',
    # Other users
    'runuser -u bob @', 'runuser -u bob -- @', "runuser bob -c '@'", "runuser -l bob -c '@'", "su -c '@'", "su bob -c '@'", "su - bob --command='@'",
    "su bob -- -c '@'", "su -s /bin/sh -c '@' bob", 'sudo @', 'sudo -nE @', 'sudo -u bob -g g @', 'sudo -ubob @', 'sudo --user bob @', 'sudo --user=bob @',
    'sudo -p x -C 3 -h host -D / -R / -r r -t t -T 5 -U u @', 'sudo A=1 @', 'sudo -i @', 'sudo -s @', 'sudo -- @', 'doas -u bob @', 'doas A=1 @', 'pkexec @',
    'pkexec --user bob @', "sg group -c '@'", "sg group '@'", "sg - group -c '@'", "sg -l group '@'", 'sg "$g" -c "@"',
    # Services, sandboxes, debuggers, loaders, terminals
    'ssh-agent @', 'ssh-agent -a s -t 5 @', 'dbus-run-session @', 'dbus-run-session --config-file=x -- @', 'systemd-run @', 'systemd-run --user --scope @',
    'systemd-run -p A=b --unit u @', 'systemd-inhibit --what=idle @', 'bwrap --ro-bind / / @', 'bwrap --setenv A b --chdir / -- @', 'gdb --args @', 'gdb -q --args @',
    '/lib64/ld-linux-x86-64.so.2 @', '/lib/ld-linux-aarch64.so.1 --library-path /x @', 'ld-musl-x86_64.so.1 @', 'tmux new-session -d @', "tmux new -s n '@'",
    "tmux neww '@'", "tmux split-window -h '@'", "tmux -L s new -d \\; neww '@'", "tmux run-shell '@'", "tmux if-shell '@' y", "tmux -c '@'", "tmux respawn-pane -k '@'",
    'screen @', 'screen -dm @', 'screen -dmS name @', 'screen -S name -dm @', 'busybox @', 'busybox env @', "busybox sh -c '@'", 'toybox @', 'fakeroot @', 'unbuffer @',
    # Arguments from elsewhere
    'xargs @', 'xargs -0r @', 'xargs -n 1 -P4 @', 'xargs -n1 -L 2 -s 99 -E x -d , -a f @', 'xargs -I{} @', 'xargs -i @', 'xargs -t -x @', 'xargs --max-args=1 --max-procs 2 @',
    'xargs --arg-file f --delimiter=, @', 'xargs --replace=X @', 'xargs -P "$(nproc)" @', 'xargs env @', 'xargs timeout 5 @', "xargs sh -c '@'", "xargs -I% sh -c '@ %'",
    'xargs xargs @', 'find . -exec @ \\;', "find . -execdir @ ';'", 'find . -ok @ {} \\;', 'find . -okdir @ {} +', 'find . -exec true {} + -exec @ {} +', 'find . -e\\xec @ \\;',
    'find . -exec env @ {} \\;', "find . -exec sh -c '@ {}' \\;", "find . -exec sh -c '@ \"$@\"' _ {} +", 'find . {-exec,true,\\;} -exec @ \\;', 'parallel @', 'parallel -j4 @ ::: a',
    'parallel --jobs 4 @ {} ::: a', "parallel '@ {}' ::: a",
    'parallel --pipe-part -a big --block 100M @', 'parallel --csv --compress --files @', 'parallel --pipe --round-robin --regexp --cat @', 'parallel --rr --pipe @', 'parallel --memsuspend 1G --halt-on-error 2 @', "parallel --rpl '{e} s/x/y/' @ ::: a",
    'parallel --arg-sep ,, @ ,, a', 'parallel --argsep=,, @ ,,+ a', 'parallel --seqreplace S --slotreplace=T @', 'parallel --sshdelay 1 --trc {}.o --transfer --return f --cleanup --onall @', 'parallel --xapply --tty @',
    'parallel -i % @ % ::: a', 'parallel -i{} @', 'parallel --replace % @ ::: a', 'parallel -i -k @', 'parallel -ki % @', 'parallel --eof E @', 'parallel -l 5 @', 'parallel -l5 @', 'parallel --max-lines 1 @', 'parallel --shuf --fifo --group-by 1 --tee @',
    "parallel --limit '@' ls ::: a", "parallel -S '@,h' ls ::: a", "parallel --compress-program '@' ls ::: a", 'env_parallel -j4 @ ::: a',
    'sem @', 'sem -j4 --id i @', 'fd -x @', 'fd -X @', 'fd --exec @', 'fd --exec=@', 'fd --exec-batch @ {}', 'fd -Hx @', 'fd . d -e py -x @ {} \\;', "fd -x sh -c '@ {}'", 'fdfind -tf -x @ \\; -l', 'ls | entr @', 'ls | entr -rc @ /_', "ls | entr -s '@'",
    'watchexec @', 'watchexec -e py -r -- @', "watchexec -w src -c '@'", "hyperfine '@'", "hyperfine ls '@'", "hyperfine -w 3 -p '@' ls", "hyperfine --warmup 3 --setup='@' ls", "hyperfine -P n 1 9 '@'",
    'find $dir -name x -exec @ \\;', 'find "$DIR" -type f -exec @ {} +',
    # Tracers, priorities, places, users
    'perf stat @', 'perf stat -e a,b -r 3 -- @', 'perf stat --event x -o f @', 'perf record @', 'perf record -g -F 99 -o f -- @', 'perf record --call-graph dwarf @', 'perf trace -e read @', 'perf --no-pager stat -d @', 'perf mem record -- @', 'perf lock record @',
    "perf stat --pre '@' ls", 'valgrind --tool=memcheck -q @', 'valgrind @', 'heaptrack -o f @', 'gtime -f %e @', 'choom -n 100 @', 'choom -n 100 -- @', 'choom --adjust 100 @', 'choom --adjust=100 @', "capsh -- -c '@'", "capsh --drop=all --user=a -- -c '@'",
    "capsh == -- -c '@'", 'numactl -C 0 @', 'numactl --physcpubind 0 --membind=0 -- @', 'numactl -i all @', 'cgexec -g cpu:/g @', 'cgexec --sticky -g cpu:/g @', 'uclampset -m 1 @', 'uclampset -m 1 -M 2 -R @', 'coresched new -- @', 'coresched -v new @', 'coresched new -t pgid -- @',
    'runcon -t x @', 'runcon --user=u -l r @', 'runcon u:r:t @', 'aa-exec -p prof -- @', 'rr record -n @', 'ls | ifne @', 'ls | ifne -n @', "ls | pee 'wc' '@'", 'logsave -a f @', 'nq -c @', 'daemonize -p f @', 'with-contenv @', 'ccache @', 'sccache @', 'distcc @', 'rustup run stable @',
    'mpirun -n 4 --host a @', 'mpiexec -np 4 @', 'orterun @', 'srun -n 4 -p q @', 'schedtool -B -n 5 -e @', 'cpulimit -l 50 @', 'cpulimit --limit 50 -- @', 'trickle -s -d 10 @', 'gosu nobody @', 'su-exec nobody:g @', 'chpst -u nobody @', 'chpst -u nobody -/ / -P -e d @', 'softlimit -m 9 @', 's6-softlimit -m 9 @', 'setuidgid nobody @', 'envuidgid nobody @',
    'envdir d @', 's6-setuidgid nobody @', 's6-envuidgid nobody @', 's6-envdir d @', 's6-applyuidgid -u 1 -g 1 @', 'setlock -n f @', 's6-setlock f @', 's6-setsid @', 's6-nice -n 5 @', 's6-env A=1 @', 'pgrphack @', 'fghack @', "execlineb -c '@'", 'run-one @', 'run-this-one @',
    'run-one-constantly @', 'run-one-until-success @', 'run-one-until-failure @', 'keep-one-running @', 'tini -e 143 @', 'tini -g -- @', 'tini-static -p SIGTERM @', 'docker-init -- @', 'dumb-init -r 15:3 @', 'dumb-init --rewrite 15:3 -c @', 'fakeroot -i f -- @', 'fakeroot -i f -s f @',
    'fakeroot --lib x -u @', 'fakeroot-ng @', 'fakeroot-sysv @', 'fakeroot-tcp @', 'fakechroot -l x @', "faketime '2020-01-01' @", "faketime -f '2020-01-01 00:00:00' @", "faketime -f '-3d' @", "faketime -m -- '-3d' @", 'proot -r / -b /x @', 'firejail --net=none --private @',
    "firejail -c '@'", 'proxychains4 -f conf @', 'proxychains -q @', 'proxychains-ng @', 'torsocks -i @', 'torsocks --port 9 @', 'torify @', 'tsocks @', 'usewithtor @', 'sshpass -p pw @', 'sshpass -e @', 'flatpak-spawn --host @', 'chronic -v @', 'unbuffer -p @', 'rlwrap -a -f words @', 'rlwrap -pred @',
    'rlwrap -C n @', 'caffeinate -t 5 @', 'catchsegv @', 'eatmydata -- @', 'ip netns exec x @', 'ip -n y netns exec x @', 'ip -all netns exec @', 'ip net e x @', 'ip vrf exec x @', 'direnv exec . @', 'xvfb-run -a -s "-screen 0" @', 'dbus-launch @', 'systemd-inhibit --why x @', 'strace -o f @',
    'genv -u A @', 'gnohup @', 'gnice -n 5 @', 'gtimeout 5 @', 'gstdbuf -oL @', 'gchroot / @', 'gxargs -n1 @', 'gfind . -exec @ \\;', 'su nobody -c "@"',
    'builtin -- command @', 'bash "$x" "@"', ". -- /dev/stdin <<< '@'", '. -p d /dev/stdin <<< "@"', "flock lock -c'@'", "flock lock --command='@'", "tmux new -d ls\\; neww '@'", 'coresched -t pgid @', "BASH_ALIASES[z]='@'", "A='x@'; f() { if ls; then f() { @; }; fi; }",
    'tsp @', 'tsp -n -L name @', 'tsp -fD 3 @', 'ts -n @', 'dtach -n s @', 'dtach -A s -e ^A -z @', 'dtach -c s -r winch @', 'abduco -n name @', 'abduco -A -e ^q name @', 'abduco -r -c name @', 'daemon @', 'daemon -n a -r -- @', 'daemon --name=a --pidfile=f @', 'daemon --name a -X "@"',
    'daemon --command="@"', 'daemon -f -o f -u me @', 'cset proc -e -s set @', 'cset proc --exec --set=set -- @', 'cset proc -e set -- @', 'cset proc -s set -e -- @', 'cset shield -e @', 'cset shield --exec -- @', 'cset -l f shield -e -u me -- @', 'uftrace @', 'uftrace record -d dir @', 'uftrace live -F main -D 3 @',
    'uftrace --no-pager -t 1us @', 'uftrace -a -- @', 'lxc exec c @', 'lxc exec c -- @', 'lxc exec c --cwd / -- @', 'lxc exec --user 0 -T c -- @', 'lxc --project p exec r:c @', "lxc exec c -- sh -c '@'", 'incus exec c -- @', 'lxc-attach -n c -- @', 'lxc-attach --name=c --clear-env -- @', 'lxc-attach -n c -v A=b @', 'lxc-execute -n c -f f -- @',
    'lxc-start -n c -F -- @', "lxc-unshare -s 'PID|MOUNT' @", 'systemd-nspawn -D / @', 'systemd-nspawn -q --directory=/ --bind=/x -- @', 'arch-chroot /mnt @', 'arch-chroot -u me /mnt @', 'schroot -c c -- @', 'schroot --chroot=c -d / -u me @', 'sandbox-exec -p p @', 'sandbox-exec -f f -D A=b @', 'nsjail -Mo --chroot / -- @', 'run0 @', 'run0 -u me -D / @',
    'run0 --user=me -- @', 'dzdo -u me @', 'arch -x86_64 @', 'arch -arm64 -e A=b @', 'gdbserver :1 @', 'gdbserver --once host:1 @', 'lldb -b -o run -- @', 'multitime -n 5 @', 'multitime -q -s 1 @', 'timelimit -t 5 -T 1 @', 'timelimit -q @', 'retry -t 3 @', 'retry --times=3 --delay=1 -- @', 'wait-for-it h:1 -t 5 -- @', 'wait-for-it.sh h:1 -- @', 'wait-for h:1 -- @', 'lckdo f @',
    'lckdo -W 5 f @', 'zrun @', "mispipe 'ls' '@'", 'nocache @', 'nocache -n 2 @', 'gamemoderun @', 'prime-run @', 'steam-run @', 'winpty -Xallow @',
    # Options that hold code
    "split --filter='@' f", "asciinema rec -c '@'", "asciinema rec --command='@' f", "ttyrec -e '@'", "bpftrace -e 'p' -c '@'", "repo forall -c '@'", "chokidar f -c '@'", "nu -c '@'", "nu --commands '@'", "elvish -c '@'", "xonsh -c '@'", "pwsh -c '@'", "pwsh -Command '@'",
    "git submodule foreach '@'", 'git submodule --quiet foreach --recursive @', "git -C d submodule foreach '@'", 'git bisect run @', 'git bisect run -- @', "git bisect run sh -c '@'",
    "nodemon --exec '@'", "nodemon -x '@' f", "cargo-watch -s '@'", "concurrently 'ls y' '@'", "concurrently -n a,b '@'", 'cross-env A=1 @',
    # Shells
    "sh -c '@'", "bash -c '@'", "bash -xec '@' a b", "bash -o pipefail -c '@'", "bash -eo pipefail -c '@'", "bash -O extglob +x -c '@'", "bash --norc -c '@'", "bash -norc -c '@'",
    "fish -c '@'", "fish -c'@'", "fish -ic '@'", "fish -o f --command '@' a", 'fd -x=@', "fish --command='@'", "fish --command '@'", "fish -C '@' s", "fish --init-command='@' -c ls",
    "bash --rcfile f -c '@'", "bash --init-file f -c '@'", "bash -c -- '@'", "bash -c -e '@'", "dash -c '@'", "ksh -c '@'", "zsh -c '@'", "/bin/sh -c '@'", "bash <<< '@'", "bash -s a <<< '@'",
    "bash - <<< '@'", "bash /dev/stdin <<< '@'", "bash /proc/self/fd/0 <<< '@'", ". /dev/stdin <<< '@'", "source /dev/fd/0 <<< '@'", "sh <<'E'\n@\nE", "sh -s <<E\n@\nE", "exec bash <<< '@'",
    "f() { bash; }; f <<< 'ls y'; f <<< '@'", "alias z=bash; z <<< 'ls y'; z <<< '@'",
    'env {,} @', '{,env} @', ". /*dev/stdin <<< '@'", "bash /dev/std?n <<< '@'", "bash /d[e]v/fd/* <<< '@'", "bash /dev/std[^x]n <<< '@'", "bash /dev/std[[:alpha:]]n <<< '@'", "bash /d[!x]v/stdin <<< '@'", "shopt -s extglob\nbash /dev/+(stdin) <<< '@'",
    "{ bash; } <<< '@'", "f() { bash; }; f <<< '@'", "env bash <<< '@'", "sudo -s <<< '@'", "at now <<< '@'", 'sh -c "sh -c \'@\'"', "sh -c 'eval \"@\"'",
    "bash-static -c '@'", "osh -c '@'", "brush -c '@'", "pdksh -c '@'", "oksh -c '@'", "loksh -c '@'",
    # Options of shells: what switches -n off again, values that are glued on, long ones, those that the line gives a variable
    "bash -n +o noexec -c '@'", "dash -n +o noexec -c '@'", "zsh -n -o exec -c '@'", "zsh -no EX_EC -c '@'", "zsh -n --exec -c '@'", "zsh -n +n -c '@'", 'bash -n +o "$o" -c "@"', "yash -n ++noexec -c '@'", "mksh -n +o noexec -c '@'",
    "zsh -oextendedglob -c '@'", "zsh -co extendedglob '@'", "ksh93 -oerrexit -c '@'", "ksh93 -o -c '@'", "mksh -oposix -c '@'", "posh -oerrexit -c '@'", "mksh -T - -c '@'", "ksh93 -T1 -c '@'", "zsh --emulate sh -c '@'", "zsh --no-rcs -c '@'", "ksh93 --norc -c '@'",
    "yash --profile f -c '@'", "yash --profile=f -c '@'", "yash --cmdline '@'", "yash -o cmdline '@'", "yash -ocmdline '@'", "zsh --shin-stdin f <<< '@'", "zsh -o shinstdin f <<< '@'", "hush -c'@'", "osh -ec'@'", "brush -c'@'",
    "o=-s; bash \"$o\" <<< '@'", "o=-x; bash \"$o\" -ec '@'", "a=(-c '@'); bash \"${a[0]}\" '@'",
    "zsh -c 'noglob @'", "zsh -c 'nocorrect @'", "zsh -c 'ls; - @'", "zsh -c 'repeat 1 @'", "zsh -c 'repeat 1 { @ }'", "zsh -c 'emulate sh -c \"@\"'", "zsh -c '=@'",
    # Commands of multiplexers and debuggers in their own words
    "tmux new -d \\; if-shell true 'run \"@\"'", "tmux new -d \\; if-shell false 'ls' 'run \"@\"'", "tmux new -d \\; if -F 1 'ls; run \"@\"'", "tmux new -d \\; run -C 'neww \"@\"'", "tmux new -d \\; set-hook -g after-new-window 'run \"@\"' \\; neww", "tmux set -g after-new-window[3] 'run \"@\"'",
    "tmux set -g default-command '@'", "tmux set -g default-com '@'", "tmux setw -g lock-command '@'", "tmux set -g command-alias[9] 'zz=run \"@\"'", "tmux display -p '#(@)'", "tmux display -p '#{?1,#(ls \"(\" \")\"),}#(@)'", "tmux set -g status-right '#(@'", "tmux new -d env 'A=\\;' @",
    "tmux bind x run '@'", "tmux bind x 'run \"@\"'", "tmux bind x run ls \\\\\\; run '@'", "tmux if true 'neww env \"A=;\" @'", "tmux if true 'A=1 run \"@\"'", "tmux if true 'if true \"run \\\"@\\\"\"'", "tmux confirm 'run \"@\"'", "tmux command-prompt 'run \"@\"'", "tmux source - <<< 'run \"@\"'", "tmux source /dev/stdin <<'E'\nls\nrun \"@\"\nE",
    "tmux run-shell '[ #{pane_id} = 1 ] && @ #S'", 'screen -dm -S -d @', 'screen -dm -t -d @', 'screen -DmS n @', 'screen -R n @', 'screen -dmRS n @', 'screen -xRR n @', 'screen -dm -s zsh @', 'screen -s env @', 'gdb -q --arg @', 'gdb -batch -ex run -ar env @', 'gdb -batch -ex --args -ex run --args env @', 'gdb -eval --args -iex=x --args env @', 'o=--args; gdb -batch -ex run "$o" env @', 'gdb "$x" --args @',
    # Options among the words of the command, values that are not, and what stands behind a file
    'nsenter -t 1 -W /tmp @', 'choom -n 4 env -- -i @', 'choom -n 4 @ --', 'busybox cttyhack @', 'cttyhack @', 'niceload @', 'niceload -v --load 5 -q @', 'busybox openvt -- @', 'openvt -c 5 -w @', 'script -q f -- @', 'script -q /dev/null @', 'o="${PWD/*/--foreground}"; timeout 5 @ "$o"',
    "env -S 'A=\"x y\" @ #no'", "env -S '@\\c' rm", "env -S '  @ '", 'o=default-command; tmux set -g "$o" "@"', "env -S 'A=1\\_@'", "env -S 'A=\"a\\tb\\$\" @'", 'env -S "A=\'a\\\\b\\x y\' @"',
    # What parallel replaces
    "parallel -I% '@ %' ::: a", "parallel -I% 'ls {}; @' ::: a", "parallel --parens ,,,, '@ ,,s/a/b/,,' ::: a", "parallel '@ {= s/a b/c/ =}' ::: a", "parallel --plus '@ {/a b/c}' ::: a", "parallel --seqreplace % '@ %' ::: a", "parallel -i '' '@ %' ::: a",
    # Values that look like options, options that are read among the operands, code in the value of an option
    'find . ! -name -exec -exec @ \\;', "find . -name '-exec' -o -exec @ \\;", 'find . ! -name -ok -exec @ \\;', 'find . -not -path -exec -exec @ \\;', 'find . ! -regex -exec -exec @ \\;', 'find . -printf -ok -execdir @ +',
    'find . -fprintf -exec ls -exec @ \\;', 'find . -fls -exec -exec @ \\;', 'find . -exec ls {} \\; ! -newermt -exec -exec @ \\;', 'find -D -exec . -exec @ \\;', 'busybox find . ! -name -exec -exec @ \\;', 'find . "$t" -exec -exec @ \\;', 'find . "$t" f -exec -exec @ \\;',
    'find . -name "$x" -exec @ \\;', 'find . ! -name $x -exec -exec @ \\;', 'strace -C @', 'strace -A -o f @', "strace -C sh -c '@'", "strace -o '|@' ls", "strace --output='!@' ls", 'o="|@"; strace -o "$o" ls',
    "runuser app --session-command='@'", "runuser - app --shell /bin/bash -c '@'", "runuser root -- -c '@'", "runuser root -s /usr/bin/bash -c '@'", "runuser root sh -c '@'", "runuser root -c ls -c '@'", 'runuser env -u root @', 'runuser -u root env -P ls @',
    "runuser -c -x root '@'", "su -c -e root '@'", "su -c +x root '@'", 'su -s /usr/bin/env root -- @', 'runuser -s /usr/bin/env root -- @', 's=/usr/bin/env; su -s "$s" root -- @', "su -s '' -c '@'",
    # Project runners
    'jenv exec @', 'goenv exec @', 'plenv exec @', 'phpenv exec @', 'opam exec -- @', 'opam exec --switch=s -- @', 'stack exec -- @', 'cabal exec -- @', 'tox -e py exec -- @', 'tox exec -e py -- @', 'fnm exec --using 20 -- @', 'lerna exec -- @', 'nx exec -- @', 'honcho run @', 'foreman run -e f @', 'volta run --node 20 @', 'toolbox run -c c @',
    'dotenvx run -f f -- @', 'env-cmd -f f @', 'pm2 start @', 'pm2 start -n a @', 'guix shell p -- @', 'guix environment --ad-hoc p -- @',
    'uv run @', 'uv run --with y -- @', 'uvx @', 'pdm run @', 'hatch run @', 'rye run @', 'bunx @', 'yarn dlx @', 'mamba run -n b @', 'micromamba run -n b @', 'pyenv exec @', 'rbenv exec @', 'nodenv exec @', 'asdf exec @', 'aws-vault exec p -- @', 'op run -- @', 'doppler run -- @', "doppler run --command='@'", 'infisical run -- @', 'chamber exec s -- @',
    'pixi run @', 'devbox run @', 'nix develop -c @', 'nix shell p --command @', "nix develop --command bash -c '@ && ls'", "nix shell n#a n#b -c sh -c '@'", 'nix develop .#x -c env @', 'nix develop -c timeout 5 @', 'nix develop -c xargs @', 'nix develop -c find . -exec @ {} +', 'nix shell n#a --command nohup @',
    "nix --extra-experimental-features 'nix-command flakes' develop -c @", 'nix --option sandbox false -L shell n#a -c @', 'nix env shell n#a -c @', "npm exec -c '@'", "npm exec --call '@'", "npm x --call='@'", "npx --call='@'", "npx --call '@'", "npx -c'@'", 'poetry run @', 'pipenv run @', 'npx @', 'npx --yes -p y @', "npx -c '@'", 'npm exec @', 'npm exec -- @', 'pnpm dlx @', 'bundle exec @', 'conda run -n b @',
    'mise exec -- @', "nix-shell -p y --run '@'", 'dotenv -f y run -- @',
    # ... with options, that may have a value or none
    *(f'uv run {option} @' for option in (
        '--cache-dir /c', '--color never', '--index-url U', '--default-index U', '--find-links D', '--no-extra a', '--no-group a', '-C a=b', '--config-setting a=b', '--exclude-newer 2024-01-01', '--config-file f', '--link-mode copy', '--resolution lowest',
        '--no-build-package a', '--python-preference system', '-p3.12', '-p 3.12', '-qp 3.12', '-p"$v"', '--with="$x"', '-nqU', '--frozen --all-extras', '--new', '--new a', '--new=a', '--new a --frozen --newer b', '-Z', '-Z a', '-qZ a', '--"$x" a', '--new a --', '-',
    )),
    'uv run $options @', 'uv $options run -q $more @', 'uv --color never run @', 'uv --cache-dir /c run @', 'uv --new a run @', 'uv --new run @', 'uv tool --new a run @', 'uv --quiet tool run --from x @', 'uvx --new a @', 'uvx -c f @', 'npx --loglevel error @', 'npx --prefix d @', 'npx --cache /c -y @', 'npx --new a @', 'pdm run -s @', 'pdm run -sk a @', 'pdm run --venv test @',
    'pnpm --reporter silent exec @', 'pnpm --workspace-concurrency 1 exec @', "pnpm exec -c '@'", 'pnpm -r --parallel exec @', 'npm --loglevel error exec @', 'npm exec -w a -ws -- @', 'mamba run -a stdin -n x @', 'micromamba run -r /root -n x @', 'opam exec --switch x -- @', 'bunx -p a @', 'bunx --bun @', "bun exec '@'", 'pnpx @', 'pnpx --package a @',
    'yarn workspace a exec @', 'yarn workspaces foreach -A exec @', 'yarn workspaces foreach -Apt --include a exec @', 'yarn --cwd d workspace a dlx -p b @', 'hatch env run -- @', 'hatch env run -e x @', 'hatch run x:@', "hatch run 'x:@'", 'hatch run +py=3.12 x.y-z:@', 'hatch -e x run @', "pixi run 'ls && @'", 'pixi run -e a --frozen @', 'devbox run -q "@"',
    'cargo watch -- @', "cargo watch -x test -s '@'", "cargo watch --shell='ls' -s'@'", 'cargo +nightly -q watch -w src -- @', 'cargo --color never watch -- @', "cargo-watch -s ls -s '@'", 'cargo-watch -c -- @', "cargo-watch --shell '@'", 'pipx run @', 'pipx run --spec a @', 'mpirun --mca btl tcp -np 2 @', 'mpiexec -env A b -n 2 @', 'mpirun --oversubscribe --new a @',
    'srun --pty -N1 -n 2 @', 'npx --a npx --b npx --c @', "nix-shell --arg a b --run ls --command '@'", 'f() { uv run bash; }; f <<< "ls y"; f <<< "@"', 'uv run --new bash -c "@"',
)  # fmt: skip

# Refused, whatever the rest of the line: the command is not known before it runs.
UNRESOLVED = (
    'alias z=bash; z; ls | z', 'f() { bash; }; f; ls | f',
    'uv run ' + '--new a ' * 17 + 'ls',
    'f() { bash "$1" "$2"; }; f -c "ls x"', 'set -- -c "ls x"; bash "$1" "$2"', "sh -c 'bash \"$1\" \"$2\"' _ -c 'ls x'", 'o=--norc p=-c; bash "$o" "$p" -x "ls x"', 'o=--norc p=-c; bash "$o" -x "$p" "$c"',
    'find . $x ' + '-exec ls ' * 10 + '\\;',
    'o=-c c="ls x"; bash "$o" "$c"', 'a=(-c "ls x"); bash "${a[0]}" "${a[1]}"', 'o=-c c="ls x"; su root "$o" "$c"', 'zsh --no-such ls', 'dash --no-such ls', 'yash --cmd ls', 'yash -o cmd ls', 'yash -o "$o" ls', 'zsh -o"$o" -c ls',
    "tmux if true 'run \"$Z\"'", "tmux if true 'run \"r\\155 x\"'", "tmux if true 'run \"ls'", 'tmux if true "$x"', 'ls | tmux source -', "tmux run 'r#{l:m} x'", "tmux run '" + '#{' * 20 + '}' * 20 + "'", 'tmux set -g default-shell $x', 'tmux ' + 'bind x ' * 40 + 'ls', 'o="${PWD/*/--foreground}"; timeout "$o" 5 ls x', 'screen -Z ls',
    """env -S 'printf "%s$x" ls'""", "env -S 'ls $x'", "env -S 'ls \\x'", "env -S 'ls \"\\c\"'", 'env -S "ls \'"',
    "parallel -I% '% x' ::: ls", "parallel -I ,, ',, x' ::: ls", "parallel -i% '% x' ::: ls", "parallel -I% 'env % x' ::: ls", 'm=%; parallel -I"$m" "% x" ::: ls', "parallel '{= $_=\"ls x\" =}' ::: a", "parallel {= '$_=\"ls\"' =} ::: a", "parallel --er % '% x' ::: ls.c",
    "parallel --parens ,,,, ',,$_=\"ls x\",,' ::: a", "parallel --parens '' 'ls' ::: a", "parallel --rpl 'Z $_=\"ls\"' 'Z x' ::: a", "parallel --rpl 'Z(.*) $_=\"ls\"' 'Zq x' ::: a", "parallel --plus '{/a b/ls} x' ::: 'a b'", "parallel --plus '{:-ls x}' ::: ''",
    'xargs -i@ -I% env % x', 'xargs --replace=@ -I% env % x', 'xargs -I% -n2 env', 'xargs -I% -L1 env', 'xargs -I% -l env', 'xargs -i -l env', 'xargs -I% -n 2 sh -c', 'xargs -I% -L1 bash -c', 'xargs -I% --max-args 2 nice -n 5', 'm=%; xargs -I"$m" env % x',
    'xargs --replace="$m" ls', 'runuser root -Z ls', 'runuser -Z -u root ls',
    'lxc exec -- $c ls', 'ls | bash /dev/st*', 'trap $x', 'hash -Z ls', 'complete -Z ls', 'mapfile -Z a', 'printf "$f" \'a[$(ls)]\'', 'bash -o $x ls', 'bash -c ls$x', 'fish --no-such ls', 'xargs source', 'parallel --no-such ls', 'su --no-such ls', 'su bob $x', 'script --no-such f', 'tmux attach \\; "$x"', 'tmux neww -Z ls', 'screen -Z ls', 'start-stop-daemon --no-such -x ls', 'rr -x record ls',
    'coresched -Z ls', 'entr -Z ls', 'hyperfine --no-such ls', 'lxc exec c$x ls', 'timeout -- $x ls', 'timeout "-n$x" 5 ls', 'f() { ls; }; if ls; then f() { bash; }; fi; ls | f',
    # What is only an option's beginning may be any option
    'x=unset; env "--$x" ls rm y', 'x=v; timeout "-$x" 5 rm y', 'nice "-$x" ls rm y', 'timeout "--$x" 5 rm y',
    'tsp $x', 'dtach -n $s ls', 'dtach $x ls', 'abduco -n $s ls', 'daemon -p f ls', 'daemon --no-such ls', 'cset shield -e ls -l', 'cset proc -e -s set $x', 'cset $x -e ls', 'uftrace --no-such ls', 'lxc exec $c ls', 'lxc exec c $x', 'lxc exec c --no-such ls', 'lxc $x ls', 'lxc-attach -n c -- $x', 'nsjail $x -- ls', 'xargs tsp', 'xargs lxc exec c',
    'env $x ls', 'env -S "ls $x"', 'env -S "ls \\"a"', 'env --no-such-option ls', 'env -Z ls', 'timeout $T ls', 'nice -n $N ls', 'sudo $x', 'sudo "$x"', 'command "$x"', 'exec "$@"', 'nohup $x',
    'xargs env', 'xargs nice -n 5', 'xargs timeout 5', 'xargs bash', 'xargs sh -c', 'xargs sudo -u bob', 'xargs busybox', 'xargs xargs', 'xargs -I{} {}', 'xargs -I{} sh -c {}', "xargs -I{} sh -c '{} x'", 'xargs $x',
    'parallel --arg-sep ,, ,, ls', 'parallel --arg-sep "$s" ls', 'parallel -i "$x" ls', 'parallel -Z4 ls', 'sg $g ls',
    'xargs find . -exec', 'find . -exec {} \\;', 'find . -exec "$x" \\;', 'find . -exec sh -c {} \\;', 'parallel', 'parallel ::: ls', 'parallel env ::: ls', 'parallel sh -c ::: ls', 'bash -c "$x"', 'bash -c $x', 'bash $x',
    'xargs -I{} bash {}', "xargs -I{} sh -c 'bash \"{}\"'", "x='1 rm'; env A=$x ls", 'env A=$(ls) ls', 'env A=$x$* ls',
    'find . -maxdepth 0 $(echo -exec) ls x \\;', 'x=-exec; find . -maxdepth 0 $x ls x \\;', 'find . -maxdepth 0 "${x:--exec}" ls x \\;', 'find . $x ls {} +', "find . -e$x ls x ';'", 'find . "-$x" ls x \\;', 'find . -name y -exec ls {} \\; $x ls y \\;', 'find . $x sh -c "ls {}" {} +',
    'gosu $u ls', 'choom -Z ls', 'perf stat --no-such ls', 'ip netns exec $n ls', 'fd -x {}', 'fd -x "$x"', 'fd -x sh -c', 'chpst -u $u ls', 'numactl $x ls', "hyperfine '$x'", 'faketime $x ls', 'capsh $x -- -c ls', 'tini $x',
    'bash -$x ls', 'bash <(ls)', 'bash < <(ls)', 'ls | bash', 'ls |& sh -s -- a', 'ls | sudo bash', 'ls | (bash)', 'ls | { :; bash; }', 'ls | while :; do bash; done', 'f() { bash; }; ls | f', 'ls | tee >(sh)', 'ls | sh /dev/stdin',
    'exec <<< x; bash', 'source <(ls)', '. /dev/fd/3', 'bash <&3', 'eval "$x"', 'eval "$(ls)"', 'eval "$x ls"', 'trap "$x" EXIT', 'alias a="$x"', 'alias if=ls', "alias a='ls &&'", 'enable -f ./x.so y', 'BASH_ENV=<(ls) bash -c ls',
    "BASH_ENV='$(ls)' bash -c ls", "PS4='$(ls)' bash -xc ls", "env 'BASH_FUNC_y%%=() { ls; }' bash -c y", 'BASH_ALIASES[$x]=ls', 'BASH_CMDS=(ls)', 'echo "${x@P}"', 'flock $x ls', 'su -c "$x"', 'watch "$x"', 'script -c "$x"',
)  # fmt: skip

# Nothing of these runs another program, whatever they are called.
HARMLESS = (
    'ls | bash ./lib/*.sh', 'source /etc/profile.d/*.sh <<< "rm x"', 'bash -c', 'watch --help', 'watch -n 1', 'env --help', 'command -p', 'command -p -v rm', 'builtin', 'enable -n test', 'bash --version rm', 'fish --version', 'fish -n rm.fish', 'source', 'at -l', 'at -f rm.sh now', 'xargs --help', 'find . -exec', 'find . -exec \\;', 'parallel --version', 'sem --wait', 'flock lock', 'runuser -u bob', 'sg group', 'newgrp rm', 'busybox', 'screen', 'screen -r x',
    "sg run --pattern 'Some($A)' --rewrite 'None' --json", "sg -p 'console.log($A)' -l js src", "sg run -p 'foo($X)' -r 'bar($X)' -U", "sg --pattern 'if ($C) { $B }' --lang ts", "sg -l bash -p 'rm $A'", 'sg -c rm scan', 'sg scan', 'sg scan -r rm.yml src', 'sg test --update-all', 'sg new rule', 'ls | sg scan --stdin',
    'uv run "$tool" rm', "npx '' rm", 'uv $x', 'uv run $x', 'uv run src/*.py rm', 'sem -j4', 'parallel cargo ::: build test', 'parallel npm ::: ci', 'parallel --number-of-cpus', 'parallel --citation', 'parallel --wait', "parallel --shellquote rm ::: 'a b'", 'parallel -i rm echo rm ::: a', "parallel -S 1/h,rm@h,: -M ls ::: a", 'parallel --limit "load 3" ls ::: a',
    'nix run .#cli -- init', 'nix run github:a/b -- format .', 'nix run', 'nix run nixpkgs#jq rm', 'nix --option a b run .#x -- rm y', 'nix develop -c', 'nix profile install rm', 'nix flake show develop', 'nix -L',
    'bwrap --ro-bind / /', 'perf mem report', 'git submodule foreach', 'git submodule foreach "$x"', 'git bisect run', 'ip netns exec x', 'fd -x', 'entr', 'schedtool -n 5', 'cset proc -e set', 'nsjail -Mo --', 'uv run --', 'npx -c', 'uv run -m black rm', 'uv run --module rm x', 'uv run -s rm', 'uv run --new', 'uv run --new --', 'uv run --frozen ruff format .', 'uv run --frozen --all-extras -q ruff format', 'uv run -p3.12 --isolated ruff format', 'uvx --isolated ruff format', 'poetry run -q ruff format', 'poetry --no-interaction -vv run ruff format',
    'npx --no-install biome format .', 'npx -y prettier format', 'npx --yes --silent --package=x biome format', 'npm exec --no -- biome format', 'bunx --bun biome format', 'bun --bun x biome format', 'pnpm -r exec biome format', 'pnpm -w --silent dlx biome format', 'yarn --silent exec biome format', 'yarn workspaces foreach -Apv exec biome format', 'conda run --no-capture-output -n x ruff format',
    'pdm run -s ruff format', 'hatch -v run fmt:ruff format', 'hatch run fmt:format-check', 'pipenv -q run ruff format', 'yarn workspaces list rm', 'yarn workspace rm add x', 'cargo watch -x rm', 'cargo run -- rm', 'cargo test rm', 'cargo +nightly fmt -- rm', 'cargo', 'cargo-watch -w rm', 'pipx install rm', 'pixi run --frozen ruff format', 'npm --prefix d run rm', 'npm --new rm exec', 'uv --new pip install rm', 'nix-shell --run ls', 'ls | nix-shell --run cat', 'echo {1..9999}', 'echo {1..99}{1..99}', 'script out $x',
    'rustup -q toolchain install rm', 'rustup -v update', 'rustup -V', 'direnv -v', 'heaptrack -p 1234', 'tmux display -p rm', 'screen -L -Logfile rm -dmS n make',
    """env -S 'printf "%s\\n" rm'""", "env -S 'ls # rm'", 'env -S ""', "env -S 'echo rm\\tx' rm", "env -S '-i ls' rm", "bash -- -c 'rm x'", 'tmux bind x', 'tmux set', 'tmux set -g status off', 'tmux set -g mouse on', "tmux if '[ -f ~/x ]' 'source ~/rm'", 'tmux set -g status-format[0] x', 'tmux set -g "$o" rm', 'tmux source ~/.tmux.conf', 'tmux source', "tmux if-shell true ''", "tmux if -F '#{x}' 'display rm'",
    'tmux bind r source-file ~/.tmux.conf \\\\\\; display rm', "tmux set -g status-right '#{host} rm'", 'gdb -ex run rm', 'gdb --args', 'gdb -p 1 rm', 'gdb "$x" rm', 'screen -r rm', 'screen -x rm', 'screen -R', 'screen -S n -X stuff rm', 'niceload -p 1', 'choom -p 1', 'script rm',
    "parallel -I% 'echo {} %' ::: rm", "parallel --plus 'mv {} {.}.{+/}' ::: rm", "parallel 'if ls; then { echo {}; }; fi' ::: rm", 'declare "a[$i]"',
    "bash -o noexec -c 'rm x'", "zsh -o NO_EXEC -c 'rm x'", "bash -no pipefail -c 'rm x'", 'bash --no-such -c ls', 'bash -o', 'zsh --emulate', 'f() { bash "$1" "$2"; }; f x.sh --fast', 'for s in $(ls); do bash "$s" "$a"; done', 'bash "$x" f', 'zsh -c repeat',
    'find . -fprintf -exec rm -print', 'strace -o rm ls', 'xargs -I{} -n 1 ls {} rm', 'xargs -I% -L1 echo % rm', 'su -h rm', 'runuser -u me -- ls -c rm', 'su -s /bin/sh bob', 'su -s "$s" bob',
    'nc -zv rm 80', 'ncat -l 80', 'netcat rm 1', 'sops -d rm', 'sops exec-env rm', 'xcrun --show-sdk-path',
    'busybox --version', 'xargs -h', 'uv tool install rm', 'nvm', 'nvm use', 'nvm install rm', 'doas -n',
    'tsp', 'tsp -t 5', 'tsp -C', "ls | ts '%H:%M:%S'", 'ls | ts', 'ls | ts -s %.s', 'dtach', 'dtach -a rm', 'dtach -p rm', 'abduco', 'abduco -a rm', 'daemon --list', 'cset', 'cset set -l', 'cset proc -l -s rm', 'cset shield -c 1-3', 'cset shield -e', 'uftrace', 'uftrace replay -d rm', 'uftrace report', 'lxc list', 'lxc delete rm', 'lxc exec c', 'lxc', 'incus list', 'nsjail -Mo rm',
    'lxc-attach -n rm', 'arch', 'systemd-nspawn -D rm', 'split -l 5 rm', 'asciinema play rm', 'pm2 start app.js', 'pm2 logs rm', 'tox -e rm', 'stack build rm', 'nu rm.nu', 'repo sync rm', 'lldb rm', 'wait-for-it h:1',
    'env', 'env A=rm', 'command -v rm', 'command -V rm', 'command -pv rm', 'type rm', 'which rm', 'hash rm', 'trap', 'trap -p', 'trap - EXIT', "trap '' INT", "trap 'echo rm' EXIT", 'trap "kill $pid" EXIT', 'alias', 'alias ll',
    "alias ll='ls rm'", 'eval ""', 'eval "x=$y"', 'exec 3> rm', 'nice', 'timeout --help', 'ionice -p 12', 'taskset -cp 0 12', 'chrt -p 12', 'prlimit --pid 12', 'strace -p 12', 'script out', 'screen -ls', 'tmux attach -t rm',
    'tmux send-keys rm Enter', 'busybox --list', 'gdb ./a rm', 'xargs', 'xargs echo rm', 'xargs bash -n', 'xargs ./x.sh', "xargs sh -c 'echo \"$@\"' _", "xargs -I{} sh -c 'wc -l \"{}\"'", 'find . -name rm', 'find . -delete', 'find $DIR -name x',
    'find . -exec bash {} \\;', 'find . -exec grep rm {} +', 'parallel echo rm ::: a', 'bash', 'bash s.sh rm', 'bash "$f"', 'bash ./$f', 'bash -n "$f"', 'bash < s.sh', 'ls | bash -n', 'ls | bash s.sh', "ls | bash -c 'cat'", "bash -c 'echo $1' rm",
    'command -v "$x"', 'command -pV $x', 'env A=$x ls', 'env PATH=$PATH:/x B=${y} ls', 'sudo A=$x ls', 'x=1; env A=$x ls', 'type "$x"',
    "find $dir -name '*.py'", 'find "$DIR" -type f -exec ls {} \\;', 'find $dir -type f -exec grep x {} +', 'find "$a" "$b" -name "*.$x" -print0', 'find . -newer "$f" -exec wc {} + -o -exec ls {} \\;', 'find . \\( -name "$x" -o -name y \\) -exec ls {} \\;', 'find $dir', 'find "$DIR" -name + -print',
    'git rebase -i HEAD~2', "git rebase --exec 'rm x' HEAD~2", 'git submodule update rm', 'git submodule foreach "git pull"', 'git bisect start rm', 'git log -x rm', 'git clone -b x rm', 'git commit -m "rm x"', 'git push origin rm', 'git grep rm', 'git clean -x', 'git -C "$d" status', 'git $x', 'git "$@"', 'git rebase -x "make $x" m',
    'ccache -s', 'ccache -M 5G', 'ccache gcc -c rm.c', 'rustup show', 'rustup update rm', 'rr replay rm', 'ip addr', 'ip link show rm', 'ip -br a', 'ip netns list', 'perf report', 'perf list rm', 'perf stat -p 12', 'fd rm', 'fd -e py rm', 'fd -ex rm', 'fd -- -x rm', 'fd -x ls rm', "fd -x grep rm {}", 'choom -p 12', 'capsh --print', 'nodemon rm.js', 'npm exec', 'npx', 'numactl -H', 'gosu nobody', 'tini', 'nix build rm',
    'direnv allow', 'parallel git ::: status', 'xargs git', 'xargs -n1 git add', 'uclampset -p 12', 'fish s.fish rm',
    'bash -c "ls $d"', 'source "$VENV/bin/activate"', '. ./rm', 'uv run pytest', 'uv pip install rm', 'npx prettier rm', 'npm run rm', 'docker exec c rm x', 'kubectl exec p -- rm x', 'ssh h rm x', 'git rm x', 'make rm', 'sudo -l', 'su bob',
)  # fmt: skip


@pytest.mark.parametrize('row', RUNS)
def test_a_denied_command_behind_a_program_is_denied(row: str) -> None:
    verdict = POLICY.check(row.replace('@', 'rm x'))

    assert verdict.decision is Decision.DENY
    assert verdict.rule == 'denied_commands', verdict.reason
    assert verdict.reason.startswith("Command 'rm' is denied.")


@pytest.mark.parametrize('row', RUNS)
def test_another_command_behind_a_program_runs(row: str) -> None:
    assert POLICY.check(row.replace('@', 'ls x')).decision is Decision.ALLOW


# What stands before the command comes from a variable that is one word, or is a number.
OPERANDS = (
    'timeout "$T" @', 'timeout "${T:-60}" @', 'timeout "${T}s" @', 'timeout $((60*5)) @', 'timeout "$((T * 2))" @', 'flock "$LOCK" @', 'flock -n "$LOCK" -c "@"', 'chroot "$ROOT" @',
    'taskset -c "$CPUS" @', 'su "$U" -c "@"', 'gosu "$U" @', 'script -qc "@" "$log"', 'ls | xargs -P$(nproc) -n1 @', 'ls | xargs -P $(nproc --all) @',
    'find . -print0 | xargs -0 -P $( getconf _NPROCESSORS_ONLN ) @', 'parallel -j$(nproc) @ ::: a', 'T=5; timeout "$T" @',
)  # fmt: skip


@pytest.mark.parametrize('row', OPERANDS)
def test_what_stands_before_the_command_may_come_from_a_variable(row: str) -> None:
    verdict = POLICY.check(row.replace('@', 'rm x'))

    assert (verdict.decision, verdict.rule) == (Decision.DENY, 'denied_commands'), verdict.reason
    assert POLICY.check(row.replace('@', 'ls x')).decision is Decision.ALLOW


@pytest.mark.parametrize(
    'row',
    [
        'timeout $T ls x',
        'timeout "${T:--v}" 5 rm',
        'T=-v; timeout "$T" 5 ls',
        'T=$(ls); timeout "$T" 5 ls',
        'read T; flock "$T" ls',
        'nice -n "$x" ls; env "$x" ls',
        'nproc() { echo "1 rm"; }; ls | xargs -P $(nproc) ls',
    ],
)
def test_what_may_become_an_option_is_not_known(row: str) -> None:
    assert POLICY.check(row).rule == 'unresolved'


# Without a command these start a shell, which reads its input.
SHELLS = (
    'linux64', 'setarch x86_64', 'setarch -R', 'fakeroot', 'fakechroot', 'unshare -r', 'chroot /x', 'nsenter -t 1', 'script -q', 'su', 'sudo -s',
    'doas -s', 'proot', 'firejail', 'arch-chroot /x', 'runuser', 'pkexec', 'sg grp', 'sg', 'newgrp grp', 'newgrp', 'runuser -u me', 'nix-shell', 'nix-shell -p hello',
    'nix develop', 'nix shell .#x', 'systemd-run --user --shell', 'systemd-run -S', 'run0', 'pipenv shell', 'poetry shell', 'hatch shell', 'hatch -e x shell', 'guix shell p', 'pixi shell', 'devbox shell',
)  # fmt: skip


@pytest.mark.parametrize('row', SHELLS)
def test_a_shell_that_a_program_starts_is_looked_at(row: str) -> None:
    assert POLICY.check(f'ls | {row}').rule == 'unresolved'
    assert POLICY.check(f'{row} <<< "rm x"').rule == 'denied_commands'
    assert POLICY.check(f'{row} <<< "ls x"').decision is Decision.ALLOW


# In front of a command whose folder is a variable.
FOLDERS = (
    'nohup @', 'env @', 'env -u PYTHONPATH @', 'env A=1 @', 'command @', 'exec @', 'nice -n 10 @', 'setsid @', 'stdbuf -oL @', '/usr/bin/time -v @',
    'timeout 5 @', 'ls | xargs -n1 @', 'ls | xargs -I{} @ {}', 'find . -exec @ {} +', 'strace -f -o t @', 'perf stat @', 'ionice -c3 @', 'ls | entr -r @',
    'sudo @', 'sudo -E @', 'xvfb-run -a @', 'nohup nice @', 'flock lock @', 'chroot / @', 'doas @', 'taskset 1 @',
)  # fmt: skip


@pytest.mark.parametrize('row', FOLDERS)
@pytest.mark.parametrize('folder', ['$D/bin/', '"$D"/', '${D}/', '"$D/../bin/"'])
def test_a_command_in_a_folder_from_a_variable_is_judged_by_its_last_part(
    row: str, folder: str
) -> None:
    verdict = POLICY.check(row.replace('@', f'{folder}rm x'))

    assert (verdict.decision, verdict.rule) == (Decision.DENY, 'denied_commands'), verdict.reason
    assert POLICY.check(row.replace('@', f'{folder}ls x')).decision is Decision.ALLOW


@pytest.mark.parametrize(
    'row',
    [
        'd="-S rm "; env "$d/ls"',
        'd=-i; env $d/ls rm',
        "d='-S rm'; nice env $d/ls",
        'd=-u; sudo $d/x',
    ],
)
def test_a_folder_that_the_line_makes_an_option_is_not_known(row: str) -> None:
    # bash and dash hand `-S rm /ls` to env, which takes it for its option.
    assert POLICY.check(row).rule == 'unresolved'


@pytest.mark.parametrize(
    'row', ['bash $D/setup.sh', 'sh ${D}/run.sh a', 'bash -x $D/x.sh rm', 'bash "$D/x.sh" rm']
)
def test_a_script_in_a_folder_from_a_variable_runs(row: str) -> None:
    assert POLICY.check(row).decision is Decision.ALLOW


def test_a_script_whose_folder_may_become_an_option_is_not_known() -> None:
    assert POLICY.check("d='-c rm'; bash $d/x.sh").rule == 'unresolved'


@pytest.mark.parametrize(
    'row', ['xargs -I% -L1 ', 'runuser -u a -P ', 'script -q f ', 'choom -n 1 -- ', 'screen -R ']
)
def test_programs_in_programs_that_are_read_in_two_ways_get_a_verdict_soon(row: str) -> None:
    start = time.process_time()

    assert POLICY.check(row * 100 + 'ls').decision is Decision.DENY
    assert time.process_time() - start < 1


def test_a_shell_whose_options_may_be_any_of_too_many_texts_is_not_known() -> None:
    texts = ' '.join(map(str, range(20_000)))

    verdict = POLICY.check('f() { ' + 'bash "$1"; ' * 60 + '}; f -x ' + texts)

    assert verdict.rule == 'unresolved'
    assert 'too many values' in verdict.reason


@pytest.mark.parametrize('row', UNRESOLVED)
def test_what_is_not_known_fails_closed(row: str) -> None:
    verdict = POLICY.check(row)

    assert verdict.decision is Decision.DENY
    assert verdict.rule == 'unresolved', verdict.reason


@pytest.mark.parametrize(
    'row',
    [
        *UNRESOLVED,
        '$x',
        'ls\u200b',
        "v='ls x '; $v/y",
        'alias "$x"',
        "echo ${a['$(ls)']}",
        "test -v 'a[$(ls)]'",
        "declare -i n; n='a[$(ls)]'",
        "printf -v 'BASH_CMDS[ls]' %s x",
        'bash --rcfile <(ls)',
        'bwrap --args 3 ls',
        'busybox -x ls',
        'setarch $x ls',
        'tmux $x',
    ],
)
def test_what_is_not_known_is_told_as_one_reason_and_one_thing_to_do(row: str) -> None:
    _, reason, *more = POLICY.check(row).reason.split(' is not known before it runs. ')

    assert not more
    assert 'not known' not in reason
    assert re.fullmatch(r'[^.]+(?:\.\S[^.]*)*\. (?:Write|Put|Leave|Choose|Define|Use) .+\.', reason)


@pytest.mark.parametrize('row', UNRESOLVED)
@pytest.mark.parametrize('unresolved', ['ask', 'allow'])
def test_what_is_not_known_is_asked_about_or_allowed_as_the_option_says(
    row: str, unresolved: str
) -> None:
    policy = Policy.from_lists(
        denied_commands=('rm',), allow_interactive=True, unresolved=unresolved
    )

    assert policy.check(row).decision is {'ask': Decision.ASK, 'allow': Decision.ALLOW}[unresolved]


@pytest.mark.parametrize('row', HARMLESS)
def test_a_denied_name_that_does_not_run_is_harmless(row: str) -> None:
    verdict = POLICY.check(row)

    assert verdict.decision is Decision.ALLOW, verdict.reason


def test_every_program_of_the_table_has_a_row() -> None:
    text = ' '.join((*RUNS, *UNRESOLVED, *HARMLESS))
    # These judge what their arguments evaluate, and have their rows in test_rules.py or test_builtins.py; or they are one entry's other names.
    elsewhere = {
        'test',
        '[',
        'let',
        'read',
        'unset',
        'printf',
        'wait',
        'getopts',
        'declare',
        'typeset',
        'local',
        'export',
        'readonly',
        'fc',
        'prove',
        'luit',
        'sotruss',
        'debconf',
        'dpkg-architecture',
        'memusage',
    }
    names = {
        'readarray',
        'ash',
        'ksh93',
        'mksh',
        'lksh',
        'rbash',
        'yash',
        'posh',
        'hush',
        'fish',
        'csh',
        'tcsh',
        'batch',
        'i386',
        'x86_64',
        'uname26',
    }
    small = {
        'catchsegv',
        'eatmydata',
        'torsocks',
        'torify',
        'chronic',
        'dumb-init',
        'tini',
        'rlwrap',
        'proxychains',
        'proxychains4',
        'firejail',
        'faketime',
    }
    small |= {
        'valgrind',
        'cgexec',
        'numactl',
        'caffeinate',
        'xvfb-run',
        'dbus-launch',
        'uvx',
        'pdm',
        'hatch',
        'rye',
        'bunx',
        'yarn',
        'mamba',
        'micromamba',
    }

    assert {name for name in PROGRAMS if f'{name} ' not in text + ' '} <= elsewhere | names | small


@pytest.mark.parametrize(
    'line',
    ["bash + -c 'rm x'", "bash +c 'rm x'", "dash +c 'rm x'", "bash +xc 'rm x'", "sh + + -c 'rm x'"],
)
def test_a_plus_before_the_letters_of_a_shell_hides_no_code(line: str) -> None:
    """Both bash and dash take `+c` for `-c` and pass over a lone `+`: they were seen to run the code."""
    assert Policy.from_lists(denied_commands=['rm']).check(line).decision is Decision.DENY


@pytest.mark.parametrize('line', ['bash + script.sh rm', "echo + -c 'rm x'"])
def test_a_plus_alone_denies_nothing(line: str) -> None:
    assert Policy.from_lists(denied_commands=['rm']).check(line).decision is Decision.ALLOW


@pytest.mark.parametrize(
    'line',
    [
        'ls | nix build',
        "ls | nix-shell --run 'cat'",
        'ls | poetry run cat',
        'ls | uv',
        'ls | systemd-run cat',
        'ls | systemd-run -u x',
        'ls | newgrp --help',
    ],
)
def test_a_program_that_starts_no_shell_reads_what_it_is_given(line: str) -> None:
    assert POLICY.check(line).decision is Decision.ALLOW


def test_options_that_are_not_known_are_read_in_bounded_time() -> None:
    line = 'npx --a npx ' * 2_000 + 'rm x'

    begin = time.process_time()
    assert POLICY.check(line).decision is Decision.DENY
    assert time.process_time() - begin < 5
