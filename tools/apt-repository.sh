#!/usr/bin/env bash
# apt-repository.sh DIR DEB…: adds packages to the apt repository in DIR, and writes its indexes anew. With APT_KEY (an id or address
# of a secret key of gpg) it is signed, and DIR/voxeld.gpg is the public key. Needs GNU coreutils, ar, tar and gzip, but no Debian.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
repository=$1
shift
pool=pool/main/v/voxeld
mkdir -p "$repository/$pool"
cp "$@" "$repository/$pool/"
cd "$repository"

suite=dists/stable.new # what is served is replaced last, when all of it is there
rm -rf $suite voxeld.gpg.new
for arch in amd64 arm64; do
	dir=$suite/main/binary-$arch
	mkdir -p $dir
	for deb in "$pool"/*_"$arch".deb; do
		[ -e "$deb" ] || continue
		ar p "$deb" control.tar.gz | tar -xzOf - ./control | sed '/^$/d'
		printf 'Filename: %s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(wc -c <"$deb" | tr -d ' ')" "$(sha256sum "$deb" | cut -d ' ' -f 1)"
	done >$dir/Packages
	gzip -9nk $dir/Packages
done
cat >Release <<END
Origin: voxeld
Label: voxeld
Suite: stable
Codename: stable
Date: $(date -u -R -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" | sed 's/+0000/UTC/')
Architectures: amd64 arm64
Components: main
Description: nodes of a shared, editable voxel world
SHA256:
$(cd $suite && for file in main/*/*; do echo " $(sha256sum "$file" | cut -d ' ' -f 1) $(wc -c <"$file" | tr -d ' ') $file"; done)
END
mv Release $suite/
if [ -n "${APT_KEY:-}" ]; then
	gpg --batch --yes --local-user "$APT_KEY" --clearsign --output $suite/InRelease $suite/Release
	gpg --batch --yes --local-user "$APT_KEY" --armor --detach-sign --output $suite/Release.gpg $suite/Release
	gpg --batch --yes --output voxeld.gpg.new --export "$APT_KEY"
fi
rm -rf dists/stable voxeld.gpg
mv $suite dists/stable
[ ! -e voxeld.gpg.new ] || mv voxeld.gpg.new voxeld.gpg
