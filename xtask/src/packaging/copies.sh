# Copies between two programs, encrypted, each in turn as the server: FOLDER OURS THEIRS. Each program is a command with its words.
# Runs in network and process namespaces of its own, so everything that it starts ends with it.

folder=$1 ours=$2 theirs=$3
ip link set lo up
cd "$folder"
must() { "$@" || { echo "failed: $*" >&2; exit 1; }; }
export HOME="$folder" FARHAUL_HOST_KEY_POLICY=accept-new LC_ALL=C.UTF-8
unset XDG_CONFIG_HOME

mkdir -p from/deep
head -c 20000000 /dev/urandom > from/deep/large
for number in $(seq 200); do echo "$number" > "from/deep/$number"; done
: > from/empty
ln -s deep/1 from/link

# The server is the first one, and the client the second.
both_ways() {
    rm -rf served fetched told
    mkdir served
    $1 serve --root served --listen 127.0.0.1:9000 > told 2>&1 &
    server=$!
    until grep -q 9000 told; do must kill -0 "$server"; sleep 0.05; done
    must timeout 120 $2 copy -a --json from udt://127.0.0.1:9000/ > pushed
    must diff -r --no-dereference from served/from
    must timeout 120 $2 copy -a --json udt://127.0.0.1:9000/from fetched > pulled
    must diff -r --no-dereference from fetched
    for record in pushed pulled; do must grep -q '"security":"tls1.3"' "$record"; done
    kill "$server"
    wait "$server" || true
    echo "ok    $1 serves $2"
}
both_ways "$ours" "$theirs"
both_ways "$theirs" "$ours"
