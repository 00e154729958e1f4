#!/bin/sh
# Packs a module, and the program, for Debian and Ubuntu. Prints the package's path.
#   tools/release/deb.sh libdq.so architecture output-folder [program]      as Debian calls it: amd64, arm64
#
# The module is below /usr/lib, as the units of redis-server and valkey-server allow executing nothing elsewhere.
set -eu
cd "$(dirname "$0")/../.."
module=$1 arch=$2 output=$3 program=${4:-}
. tools/release/common.sh

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
folder=/usr/lib/redis/modules
put_files "$root" "$folder" /usr/lib/valkey/modules /usr/share/doc/redis-dq
gzip -9n >"$root/usr/share/doc/redis-dq/changelog.Debian.gz" <<END
redis-dq ($version-1) unstable; urgency=medium

  * Version $version: see changelog.gz.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
chmod 644 "$root/usr/share/doc/redis-dq/changelog.Debian.gz"
# It carries a server for machines without one, and needs no library of the system's.
if [ -n "$program" ]; then
    mkdir -p "$root/usr/share/lintian/overrides"
    printf 'redis-dq: %s [usr/bin/dq]\n' statically-linked-binary binary-without-manpage >"$root/usr/share/lintian/overrides/redis-dq"
fi
mkdir "$root/DEBIAN"
size=$(du -sk --apparent-size "$root/usr" | cut -f 1)
cat >"$root/DEBIAN/control" <<END
Package: redis-dq
Version: $version-1
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $size
Depends: libc6 (>= $(newest_glibc "$module"))$(! wants libgcc_s.so.1 || echo ', libgcc-s1')
Enhances: redis-server, valkey-server
Section: database
Priority: optional
Description: $summary
$(about | sed 's/^$/./; s/^/ /')
END
{ echo '#!/bin/sh'; echo 'set -e'; echo '[ "$1" = configure ] || exit 0'; say "$folder"; } >"$root/DEBIAN/postinst"
chmod 755 "$root/DEBIAN/postinst"
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$output"
dpkg-deb --root-owner-group -Zxz --build "$root" "$output/redis-dq_$version-1_$arch.deb" >/dev/null
echo "$output/redis-dq_$version-1_$arch.deb"
