#!/bin/bash
# make check-arm64: pmucount for arm64 in an emulated machine whose counters
# are exact (qemu-system-aarch64 -icount): true instruction counts by system
# call, by user-space reads, through kernel probes, beside a software event,
# with all counters taken, and the difference of two builds.
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
passed=0 failed=0

not_run() {
	echo "check-arm64: not run: $*"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

broken() {
	echo "check-arm64: $*"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

for tool in qemu-system-aarch64 $cross cpio apt-get dpkg-deb; do
	command -v "$tool" >/dev/null || not_run "no $tool"
done
mkdir -p "$dir"/{lists/partial,cache/archives/partial,state,parts,root,inc}
cd "$dir" || broken "cannot write to $dir"

fetch() {
	local sources=/etc/apt/sources.list.d/debian.sources kernel
	[[ -e $sources ]] || not_run "no $sources"
	touch state/status
	sed '/^Components:/a Architectures: arm64' "$sources" \
		>parts/debian.sources
	local o=(-o APT::Architecture=arm64 -o APT::Architectures::=arm64
		-o Dir::State="$dir/state"
		-o Dir::State::status="$dir/state/status"
		-o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache"
		-o Dir::Etc::sourcelist=/dev/null
		-o Dir::Etc::sourceparts="$dir/parts"
		-o APT::Sandbox::User=root)
	timeout 120 apt-get "${o[@]}" -qq update || not_run "no package lists"
	kernel=$(apt-cache "${o[@]}" depends linux-image-arm64 |
		awk '/Depends/ { print $2 }')
	timeout 300 apt-get "${o[@]}" -qq download "$kernel" zlib1g \
		zlib1g-dev libcsv3 libcsv-dev || not_run "no packages"
	dpkg-deb --fsys-tarfile linux-image-*.deb | tar x ./boot ||
		not_run "cannot unpack the kernel"
	for p in zlib1g*.deb libcsv*.deb; do
		dpkg-deb -x "$p" sys || not_run "cannot unpack $p"
	done
	touch fetched
}

[[ -e fetched ]] || fetch
cp /usr/include/xxhash.h inc/ || not_run "no xxhash.h"
sys=$dir/sys/usr
make -s -j2 -C "$root" BUILD="$dir/build" CC=$cross CFLAGS="-O1 -g" \
	CPPFLAGS="-isystem $dir/inc -isystem $sys/include" \
	LDFLAGS="-L$sys/lib/aarch64-linux-gnu" \
	"$dir/build/pmucount" "$dir/build/libpmucount.so" ||
	broken "it does not build"

rm -rf root
mkdir -p root/{proc,sys,lib,dev,tmp}
src=$root/tests/pmu
# ldaddal, as in the published story
lse="-O1 -fpatchable-function-entry=5 -march=armv8.1-a -mno-outline-atomics"
{
	$cross -O2 -static -o root/init "$src/init.c" &&
		$cross -O1 -o root/guest "$src/guest.c" "$src/guest.S" &&
		$cross $lse -o root/before "$src/update.c" &&
		$cross $lse -DATOMIC -o root/after "$src/update.c"
} || broken "the guest's programs do not build"
cp build/pmucount build/libpmucount.so root/
cp $libs/ld-linux-aarch64.so.1 $libs/libc.so.6 $libs/libm.so.6 \
	sys/lib/aarch64-linux-gnu/libz.so.1 \
	sys/usr/lib/aarch64-linux-gnu/libcsv.so.3 root/lib/ ||
	broken "no libraries for the guest"
(cd root && find . | cpio --quiet -o -H newc | gzip -1) >initrd.gz
timeout 600 qemu-system-aarch64 -M virt -nic none -cpu neoverse-n1 \
	-icount shift=0 -smp 1 -m 512 -nographic -no-reboot \
	-kernel boot/vmlinuz-* -initrd initrd.gz \
	-append "console=ttyAMA0 quiet panic=-1" </dev/null 2>&1 |
	tr -d '\r' >log

# part NAME: what the guest printed for one test
part() {
	awk -v n="== $1" '/^== / { on = $0 == n } on' log
}

# want PART PATTERN: a line of it must match
want() {
	if part "$1" | grep -qE "$2"; then
		((passed += 1))
		return
	fi
	((failed += 1))
	echo "check-arm64: $1: no line like $2"
	part "$1" | grep -E '^(pmu|counter|caveat|delta|init|rc)' | head -20
}

# body PROGRAM: instructions of update() up to its return
body() {
	aarch64-linux-gnu-objdump -d "root/$1" |
		awk '/<update>:$/ { on = 1; next }
			on { n++ } on && /\tret/ { print n; exit }'
}

t=$'\t'
i=instructions
for p in read page read-faults faults-read page-faults uprobe \
	uprobe-faults; do
	want $p "func=leaf${t}calls=1010$t.*self.$i=4040$t"
	want $p "func=leaf$t.*min.$i=4${t}max.$i=4($t|\$)"
	want $p "func=loopn${t}calls=10$t.*min.$i=2002${t}max.$i=2002($t|\$)"
	want $p "func=twice${t}calls=5$t.*self.$i=30${t}incl.$i=70$t"
	want $p '^rc=7'
done
for p in read page; do
	want $p "name=$i$t.*check=trusted"
	want $p "name=$i$t.*source=$p"
done
want page-faults 'func=leaf.*self.page-faults=[0-9]'
want taken "func=leaf${t}calls=1010$t.*self.$i=unknown"
a=$(body before) b=$(body after)
want diff "func=update${t}counter=calls${t}result=same"
want diff "func=update${t}counter=$i${t}result=changed${t}.*a=$a${t}b=$b$t"
want diff '^rc=1'
want end '^== end'
echo "$passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
