#!/bin/sh
# Packs a module, and the program, for Fedora, RHEL and their derivatives. Prints the package's path.
#   tools/release/rpm.sh libdq.so architecture output-folder [program]      as they call it: x86_64, aarch64
set -eu
cd "$(dirname "$0")/../.."
module=$1 arch=$2 output=$3 program=${4:-}
. tools/release/common.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=/usr/lib64/redis/modules
put_files "$work/files" "$folder" /usr/lib64/valkey/modules /usr/share/doc/redis-dq
cat >"$work/redis-dq.spec" <<END
Name: redis-dq
Version: $version
Release: 1
Summary: $summary
License: BSD-3-Clause
Packager: $maintainer
Recommends: (redis or valkey)

%global __provides_exclude_from .*
%global debug_package %{nil}

%description
$(about)

%install
cp -a '$work/files/.' '%{buildroot}/'

%post
$(say "$folder")

%files
%defattr(-,root,root)
%dir /usr/lib64/redis
%dir $folder
%dir /usr/lib64/valkey
%dir /usr/lib64/valkey/modules
$folder/libdq.so
/usr/lib64/valkey/modules/libdq.so
/usr/share/doc/redis-dq
${program:+/usr/bin/dq
/usr/share/man/man1/*
/usr/share/bash-completion/completions/dq}
END
find "$work/files" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
# Nothing depends on this machine or the date; not stripped again; compressed so that rpm 4.14 (RHEL 8) can read it.
rpmbuild -bb --quiet --target "$arch-linux" --define "_topdir $work/rpm" --define "_rpmdir $work/rpm" --define '_build_id_links none' \
    --define '_buildhost localhost' --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
    --define '__os_install_post %{nil}' --define '_binary_payload w6.xzdio' "$work/redis-dq.spec" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
mkdir -p "$output"
mv "$work/rpm/$arch/redis-dq-$version-1.$arch.rpm" "$output/"
echo "$output/redis-dq-$version-1.$arch.rpm"
