/*
 * zlib's own inflate loop, the peer of reading .npz and .npy.gz: reads a gzip
 * file, or the first member of a zip file, inflates it in 64 KiB blocks,
 * checks its CRC-32 as any unzip does, and throws the bytes away.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 64 << 10, ZIP_LOCAL = 30 };

int
main(int argc, char **argv)
{
	static unsigned char in[BLOCK], out[BLOCK];
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	ssize_t n = fd < 0 ? -1 : read(fd, in, sizeof in);
	if (n < ZIP_LOCAL)
		return 2;
	z_stream z = { 0 };
	z.next_in = in;
	z.avail_in = (uInt)n;
	int zip = !memcmp(in, "PK\3\4", 4);
	if (zip) {
		unsigned skip =
		    ZIP_LOCAL + in[26] + 256u * in[27] + in[28] + 256u * in[29];
		z.next_in += skip;
		z.avail_in -= skip;
	}
	if (inflateInit2(&z, zip ? -MAX_WBITS : 16 + MAX_WBITS) != Z_OK)
		return 2;
	uLong crc = 0, total = 0;
	for (int r = Z_OK; r == Z_OK;) {
		if (!z.avail_in) {
			n = read(fd, in, sizeof in);
			if (n <= 0)
				return 1;
			z.next_in = in;
			z.avail_in = (uInt)n;
		}
		z.next_out = out;
		z.avail_out = sizeof out;
		r = inflate(&z, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END)
			return 1;
		uInt made = (uInt)sizeof out - z.avail_out;
		if (zip)
			crc = crc32(crc, out, made);
		total += made;
	}
	printf("%lu %08lx\n", total, crc);
	return 0;
}
