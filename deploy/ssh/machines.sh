#!/usr/bin/env bash
# machines.sh: installs and upgrades voxeld on many Debian or Ubuntu machines over ssh, as docs/install.md describes it for three.
#
#   HOSTS='a.example.org b.example.org c.example.org' deploy/ssh/machines.sh install voxeld_VERSION_amd64.deb
#   HOSTS=… deploy/ssh/machines.sh upgrade voxeld_NEW_amd64.deb
#   HOSTS=… deploy/ssh/machines.sh run voxeld doctor
#
# install: the first host creates the world, and the others join it. Run it again with more hosts at the end to add them:
# it leaves nodes alone that run already. upgrade: one host after the other; each must be healthy again before the next
# one. run: a command on each.
#
# Needs root at all hosts by ssh with a key (USER_AT=root@). NAME is the name of a new world. Every host advertises
# http://HOST:8080 to players: with HTTPS, edit /etc/voxeld/voxeld.toml afterwards.
set -euo pipefail
[ $# -ge 2 ] && [ -n "${HOSTS:-}" ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
action=$1
shift
read -ra hosts <<<"$HOSTS"
first=${hosts[0]}

on() { # on HOST COMMAND: as root, with this standard input
	local host=$1
	shift
	ssh -o BatchMode=yes "${USER_AT:-root@}$host" "$*"
}

put() { # put HOST DEB
	echo "== $1"
	on "$1" 'cat >/tmp/voxeld.deb' <"$2"
	on "$1" 'DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends --allow-downgrades /tmp/voxeld.deb && rm /tmp/voxeld.deb' </dev/null
}

healthy() { on "$1" 'voxeld status --wait healthy --timeout 10m' </dev/null; }

case $action in
install)
	token=
	for host in "${hosts[@]}"; do
		if on "$host" 'systemctl is-active --quiet voxeld' </dev/null; then
			echo "== $host runs already"
			continue
		fi
		put "$host" "$1"
		if [ "$host" = "$first" ]; then
			if ! on "$host" '[ -e /var/lib/voxeld/voxeld.db ]' </dev/null; then
				for other in "${hosts[@]:1}"; do # a first host that has lost its disk must not create another world
					! on "$other" '[ -e /var/lib/voxeld/voxeld.db ]' </dev/null || {
						echo "$other has a world, and $host has none: name $other first" >&2
						exit 1
					}
				done
				on "$host" "voxeld init --name '${NAME:-Commons}'" </dev/null
			fi
		else
			[ -n "$token" ] || token=$(on "$first" "voxeld invite --issuer --uses ${#hosts[@]}" </dev/null)
			on "$host" 'install -g voxeld -m 640 /dev/stdin /etc/voxeld/token' <<<"$token"
			on "$host" "grep -q '^join' /etc/voxeld/voxeld.toml || echo 'join = [\"@/etc/voxeld/token\"]' >>/etc/voxeld/voxeld.toml" </dev/null
		fi
		on "$host" "grep -q '^advertise_http' /etc/voxeld/voxeld.toml || echo 'advertise_http = \"http://$host:8080\"' >>/etc/voxeld/voxeld.toml" </dev/null
		on "$host" 'voxeld config validate && systemctl enable --now voxeld' </dev/null
	done
	for host in "${hosts[@]}"; do healthy "$host"; done
	;;
upgrade)
	for host in "${hosts[@]}"; do
		put "$host" "$1"
		healthy "$host"
	done
	;;
run)
	for host in "${hosts[@]}"; do
		echo "== $host"
		on "$host" "$*" </dev/null || echo "$host: exit code $?"
	done
	;;
*)
	echo "machines.sh: install, upgrade or run, not $action" >&2
	exit 2
	;;
esac
