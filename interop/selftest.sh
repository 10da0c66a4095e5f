#!/bin/sh
# Runs libudt against libudt through every action of the peer, so that a failing interoperability test
# can be blamed on our side. Takes about 8 s. Exit status 77 when the peer cannot be built.
# Usage: interop/selftest.sh [FOLDER], as for build.sh.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if ! build=$("$here/build.sh" "$@"); then
    echo "$build"
    case $build in skip:*) exit 77 ;; *) exit 1 ;; esac
fi
peer=$build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# field FILE NAME: the values of that field, one a line, sorted.
field() {
    sed -n "s/.*\"$2\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$1" | sort
}

# equal FILE NAME FILE NAME
equal() {
    [ -n "$(field "$1" "$2")" ] && [ "$(field "$1" "$2")" = "$(field "$3" "$4")" ]
}

# pair "SERVER ARGUMENTS" "CLIENT ARGUMENTS": leaves $work/server and $work/client, and their exit statuses.
pair() {
    : >"$work/server"
    "$peer" listen "${host:-127.0.0.1}:0" --timeout 60 $1 >"$work/server" &
    server=$!
    until grep -q '^listening' "$work/server" || ! kill -0 "$server" 2>/dev/null; do sleep 0.02; done
    client_status=0 server_status=0
    "$peer" connect "$(sed -n 's/^listening //p' "$work/server")" --timeout 60 $2 >"$work/client" || client_status=$?
    wait "$server" || server_status=$?
}

# verdict NAME CONDITION...: both sides ended well and the condition holds.
verdict() {
    name=$1
    shift
    if [ "$server_status$client_status" = "${statuses:-00}" ] && "$@"; then
        echo "ok    $name"
    else
        echo "FAIL  $name (server $server_status, client $client_status)"
        sed 's/^/      /' "$work/server" "$work/client"
        failed=1
    fi
}

S=$work/server C=$work/client

pair "recv" "send --bytes 20000000 --seed 5"
verdict "the server receives a stream" equal "$S" received_digest "$C" sent_digest

pair "send --bytes 20000000 --seed 5 --start-delay 50" "recv --expect 20000000"
verdict "the server sends a stream" equal "$S" sent_digest "$C" received_digest

pair "both --bytes 20000000 --seed 5 --start-delay 50" "both --bytes 20000000 --seed 6"
verdict "both at once, client to server" equal "$S" received_digest "$C" sent_digest
verdict "both at once, server to client" equal "$S" sent_digest "$C" received_digest

pair "echo" "both --bytes 5000000"
verdict "the server echoes" equal "$C" sent_digest "$C" received_digest

# Whoever has something to tell closes last: a peer's close takes messages that were not taken out, and error signals.
last="--close-delay 20000"
pair "recv --messages --expect 100" "send --messages --count 100 --message-size 5000 --in-order 1 $last"
verdict "ordered messages to the server" equal "$S" received_digest "$C" sent_digest

pair "send --messages --count 100 --message-size 5000 --start-delay 50 $last" "recv --messages --expect 100"
verdict "unordered messages from the server" equal "$S" sent_digest "$C" received_digest

pair "both --messages --count 200 --start-delay 50 $last" "both --messages --count 300 --expect 200 --close-delay 1000"
verdict "messages both ways" equal "$S" sent_digest "$C" received_digest

pair "recv --sockets 4" "send --sockets 4 --bytes 2000000"
verdict "four sockets on one port" equal "$S" received_digest "$C" sent_digest
[ "$(field "$C" local | uniq | wc -l)" = 1 ] || { echo "FAIL  the four sockets have several ports"; failed=1; }

head -c 3000001 /dev/zero | tr '\0' 'x' >"$work/file"
pair "recv --recvfile --out $work/copy --expect 3000001" "send --sendfile --file $work/file"
verdict "sendfile to recvfile" cmp "$work/file" "$work/copy"

pair "recv --interval 0.001" "send --bytes 2000000"
verdict "how much has arrived is told on the way" grep -q '{"event":"interval","connection":0,"clock_s":' "$S"

if grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
    host='[::1]'
    pair "recv --ipv6" "send --bytes 1000000 --ipv6 --mss 1400"
    verdict "IPv6" equal "$S" received_digest "$C" sent_digest
    host=127.0.0.1
else
    echo "skip  IPv6: this machine has no ::1"
fi

statuses=11
pair "recv --error-signal --expect 20000000 $last" "send --bytes 20000000 --sndbuf 200000"
verdict "a full disk is signalled to the sender" grep -q '"code":7000' "$C"
statuses=00

# Two free ports: ask for one, and take its neighbour.
pair "recv" "send --bytes 1"
port=$(sed -n 's/^listening .*://p' "$S")
one=127.0.0.1:$port two=127.0.0.1:$((port > 60000 ? port - 1 : port + 1))
client_status=0 server_status=0
"$peer" rendezvous --local "$one" --peer "$two" both --bytes 1000000 --seed 1 --start-delay 500 --timeout 60 >"$S" &
server=$!
"$peer" rendezvous --local "$two" --peer "$one" both --bytes 1000000 --seed 2 --start-delay 500 --timeout 60 >"$C" || client_status=$?
wait "$server" || server_status=$?
verdict "rendezvous" equal "$S" received_digest "$C" sent_digest

exit "$failed"
