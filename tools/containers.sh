#!/usr/bin/env bash
# containers.sh: tests the compose files on a container engine of its own, in a network of its own: deploy/containers_test.go.
# Needs root on Linux. Where no engine can run it says so and succeeds; then the test was skipped.
set -euo pipefail
skip() { echo "SKIPPED: the test of the containers: $*" >&2; exit 0; }

if [ -z "${INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip 'it needs root'
	for tool in dockerd:docker.io docker-compose:docker-compose iptables:iptables; do
		tools/need.sh "${tool%:*}" "${tool#*:}" || skip "${tool%:*} cannot be installed"
	done
	mkdir -p bin/image/data bin/image/token
	cp bin/voxeld bin/image/
	go test -c -o bin/containers.test ./deploy
	# The engine changes iptables: here they end with the network. It also loads a module that filters the packets of all bridges.
	unshare --net --mount true 2>/dev/null || skip 'it cannot have a network of its own'
	filter=/proc/sys/net/bridge/bridge-nf-call-iptables
	before=$(cat $filter 2>/dev/null || echo 0)
	trap '[ ! -e $filter ] || echo "$before" >$filter' EXIT
	INSIDE=1 unshare --net --mount "$0"
	exit
fi

ip link set lo up
dir=$(mktemp -d)
export DOCKER_HOST=unix://$dir/docker.sock DOCKER_BUILDKIT=0 COMPOSE_DOCKER_CLI_BUILD=0
stop() {
	if [ -s "$dir/pid" ]; then
		pid=$(cat "$dir/pid")
		kill "$pid" 2>/dev/null || true
		for _ in $(seq 100); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
	fi
	rm -rf "$dir" 2>/dev/null || true
}
trap stop EXIT
dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" --host "$DOCKER_HOST" >"$dir/log" 2>&1 &
for _ in $(seq 300); do
	docker info >/dev/null 2>&1 && break
	kill -0 $! 2>/dev/null || break
	sleep 0.1
done
docker info >/dev/null 2>&1 || skip "the engine does not start: $(tail -n 1 "$dir/log")"
cd deploy
../bin/containers.test -test.run '^TestContainers$' -test.v -containers
