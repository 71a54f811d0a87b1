#!/bin/bash
# make check-arm64: pmucount for arm64 in an emulated machine whose counters
# are exact (qemu-system-aarch64 -icount): true instruction counts by system
# call, by user-space reads, through kernel probes, and with all counters taken.
#
# Everything is fetched into $ARM64 (default build/arm64) with the machine's own
# Debian sources, arm64 added, in a folder of its own; nothing is installed.
# What is already there is used again. Without qemu, the cross compiler or the
# packages: not run, status 0.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
dir=${ARM64:-$root/build/arm64}
cross=aarch64-linux-gnu-gcc
libs=/usr/aarch64-linux-gnu/lib

not_run() {
	echo "check-arm64: not run: $*"
	exit 0
}

for tool in qemu-system-aarch64 $cross cpio apt-get dpkg-deb; do
	command -v "$tool" >/dev/null || not_run "no $tool"
done
mkdir -p "$dir"/{lists/partial,cache/archives/partial,state,parts,root,inc}
cd "$dir" || exit 1

fetch() {
	local sources=/etc/apt/sources.list.d/debian.sources kernel
	[[ -e $sources ]] || not_run "no $sources"
	touch state/status
	sed '/^Components:/a Architectures: arm64' "$sources" \
		>parts/debian.sources
	local o=(-o APT::Architecture=arm64 -o APT::Architectures::=arm64
		-o Dir::State="$dir/state" -o Dir::State::status="$dir/state/status"
		-o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache"
		-o Dir::Etc::sourcelist=/dev/null
		-o Dir::Etc::sourceparts="$dir/parts" -o APT::Sandbox::User=root)
	timeout 120 apt-get "${o[@]}" -qq update || not_run "no package lists"
	kernel=$(apt-cache "${o[@]}" depends linux-image-arm64 |
		awk '/Depends/ { print $2 }')
	timeout 300 apt-get "${o[@]}" -qq download "$kernel" zlib1g \
		zlib1g-dev libcsv3 libcsv-dev || not_run "no packages"
	dpkg-deb --fsys-tarfile linux-image-*.deb | tar x ./boot
	for p in zlib1g*.deb libcsv*.deb; do
		dpkg-deb -x "$p" sys
	done
}

ls boot/vmlinuz-* >/dev/null 2>&1 || fetch
cp /usr/include/xxhash.h inc/ || not_run "no xxhash.h"
sys=$dir/sys/usr
make -s -j2 -C "$root" BUILD="$dir/build" CC=$cross CFLAGS="-O1 -g" \
	CPPFLAGS="-isystem $dir/inc -isystem $sys/include" \
	LDFLAGS="-L$sys/lib/aarch64-linux-gnu" \
	"$dir/build/pmucount" "$dir/build/libpmucount.so" || exit 1

rm -rf root
mkdir -p root/{proc,sys,lib,dev,tmp}
src=$root/tests/pmu
$cross -O2 -static -o root/init "$src/init.c" || exit 1
$cross -O1 -o root/guest "$src/guest.c" "$src/guest.S" || exit 1
cp build/pmucount build/libpmucount.so root/
cp $libs/ld-linux-aarch64.so.1 $libs/libc.so.6 $libs/libm.so.6 \
	sys/lib/aarch64-linux-gnu/libz.so.1 \
	sys/usr/lib/aarch64-linux-gnu/libcsv.so.3 root/lib/ || exit 1
(cd root && find . | cpio --quiet -o -H newc | gzip -1) >initrd.gz
timeout 120 qemu-system-aarch64 -M virt -nic none -cpu cortex-a57 \
	-icount shift=0 -smp 1 -m 512 -nographic -no-reboot \
	-kernel boot/vmlinuz-* -initrd initrd.gz \
	-append "console=ttyAMA0 quiet panic=-1" </dev/null 2>&1 |
	tr -d '\r' >log

wrong=0
# part NAME: what the guest printed for one test
part() {
	awk -v n="== $1" '/^== / { on = $0 == n } on' log
}

# want PART PATTERN: a line of it must match
want() {
	part "$1" | grep -qE "$2" && return
	echo "check-arm64: $1: no line like $2"
	part "$1" | grep -E '^(pmu|counter|caveat|pmucount|rc)' | head -20
	wrong=1
}

t=$'\t'
for p in read page; do
	want $p "func=leaf${t}calls=1010$t.*self.instructions=4040$t.*min.instructions=4${t}max.instructions=4"
	want $p "func=loopn${t}calls=10$t.*min.instructions=2002${t}max.instructions=2002"
	want $p "func=twice${t}calls=5$t.*self.instructions=30${t}incl.instructions=70"
	want $p 'check=trusted'
	want $p '^rc=7'
done
want read 'source=read'
want page 'source=page'
want uprobe "func=loopn${t}calls=10$t"
want uprobe "func=leaf${t}calls=1010$t"
want uprobe "func=twice${t}calls=5$t.*self.instructions=30${t}incl.instructions=70"
want uprobe '^rc=7'
want taken "func=leaf${t}calls=1010$t.*self.instructions=unknown"
want end '^== end'
[[ $wrong == 0 ]] && echo "check-arm64: exact counts by read, page and" \
	"uprobe; unknown when all counters are taken"
exit $wrong
