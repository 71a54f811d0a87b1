/* fp and scalar records: parsing, writing, keys, comparing. */
#include "fp.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static char undone[4096];

static int
parse(const char *line, struct rec *r, struct fp *f, struct fp_label *label)
{
	struct err e = { 0 };
	int err = rec_parse(str_c(line), undone, r, &e);
	return err ? err : fp_parse(f, r, label, &e);
}

/* Every member in the writer's order, and two labels. */
static const char full[] =
    "fp\tname=a\tdtype=f32\tshape=2,3\tbytes=24"
    "\thash=xxh3-128:00112233445566778899aabbccddeeff\tstep=3\tmb=0"
    "\tphase=fwd\trank=1\tdp=2\tpp=3\ttp=4\tep=5\tio=out\tseq=7\tocc=2"
    "\tfile=x\tkernel=k\tdev=gpu0\tstorage=s\tcanon=mix64:00000000000000ff"
    "\tshardsum=xxh3-128:00112233445566778899aabbccddeef0\tunit=8"
    "\trows=sha1:abcd\ttiles=t\tglobal=4,3\toffset=2,0\treplicated=dp"
    "\tslice=0:2,:\tleft=1\tmin=-inf\tmax=0.1\tmean=nan\tnan=1\tinf=2"
    "\tzero=3\tnote=n\trun=b\tx.Y=z";

static void
test_round_trip(void)
{
	static struct rec r;
	struct fp f;
	struct fp_label label[REC_FIELDS_MAX];
	CHECK(parse(full, &r, &f, label) == 0);
	CHECK(!f.scalar && f.bytes == 24 && f.seq.v == 7 && f.left.v == 1);
	CHECK(f.hash.algorithm == FP_XXH3 &&
	      f.hash.value.hi == UINT64_C(0x0011223344556677) &&
	      f.hash.value.lo == UINT64_C(0x8899aabbccddeeff));
	CHECK(f.canon.algorithm == FP_MIX64 && f.canon.value.lo == 0xff);
	CHECK(f.rows.algorithm == FP_OTHER);
	CHECK(f.nlabels == 2 && str_is(label[1].key, "x.Y"));

	char name[] = "/tmp/fp-test.XXXXXX", back[2048];
	int fd = mkstemp(name);
	unlink(name);
	struct rec_out *o = NULL;
	struct rec_how how = { 0 };
	struct err e;
	CHECK(fd >= 0 && rec_out_open(&o, fd, &how, &e) == 0);
	fp_write(o, &f);
	CHECK(rec_out_flush(o, &e) == 0);
	ssize_t n = pread(fd, back, sizeof back, 0);
	CHECK(
	    n == (ssize_t)sizeof full && !memcmp(back, full, sizeof full - 1));
	rec_out_close(o);
	close(fd);
}

static void
test_bad(void)
{
	static struct rec r;
	struct fp f;
	const char *base = "fp\tname=a\tdtype=f32\tshape=\tbytes=4\t";
	const char *bad[] = {
		"hash=xxh3-128:00",
		"hash=00112233445566778899aabbccddeeff",
		"hash=xxh3-128:00112233445566778899AABBCCDDEEFF",
		"hash=mix64:123",
		"hash=a:b\tseq=x",
		"hash=a:b\tmin=1x",
		NULL,
	};
	for (int i = 0; bad[i]; i++) {
		char line[256];
		snprintf(line, sizeof line, "%s%s", base, bad[i]);
		CHECK(parse(line, &r, &f, NULL) == SE_EFORMAT);
	}
}

/* The layout of the key, against the digest of bytes written out here. */
static void
test_key(void)
{
	struct fp f = { .name = STR_LIT("ab") };
	f.place[FP_STEP] = STR_LIT("7");
	unsigned char bytes[10 * 9 + 3] = { 0 };
	bytes[0] = 1;
	bytes[1] = 1;
	bytes[9] = '7';
	bytes[10 + 8 * 9] = 1;
	bytes[11 + 8 * 9] = 2;
	bytes[10 + 9 * 9] = 'a';
	bytes[11 + 9 * 9] = 'b';
	struct buf b = { 0 };
	struct u128 key = fp_key(&f, 0, &b);
	CHECK(u128_same(key, hash_xxh3(bytes, 10 * 9 + 3)));
	/* Absent is not empty, and parts do not run together. */
	struct fp g = f;
	g.place[FP_MB] = STR_LIT("");
	CHECK(!u128_same(key, fp_key(&g, 0, &b)));
	CHECK(u128_same(key, fp_key(&g, 1u << FP_MB, &b)));
	g = f;
	g.place[FP_STEP] = STR_NULL;
	CHECK(!u128_same(key, fp_key(&g, 0, &b)));
	CHECK(u128_same(fp_key(&f, 1u << FP_STEP, &b), fp_key(&g, 0, &b)));
	buf_free(&b);
}

static enum fp_relation
compare(const char *x, const char *y, const char **why)
{
	static struct rec a, b;
	char more[4096];
	struct fp f = { 0 }, g = { 0 };
	*why = "";
	CHECK(parse(x, &a, &f, NULL) == 0);
	CHECK(rec_parse(str_c(y), more, &b, NULL) == 0);
	CHECK(fp_parse(&g, &b, NULL, NULL) == 0);
	return fp_compare(&f, &g, why);
}

static void
test_compare(void)
{
	const char *why;
	const char *a = "fp\tname=a\tdtype=f32\tshape=2\tbytes=8\thash=";
	char x[512], y[256];
	snprintf(x, sizeof x, "%smix64:0000000000000001", a);
	snprintf(y, sizeof y, "%smix64:0000000000000002\tseq=9", a);
	CHECK(compare(x, x, &why) == FP_SAME);
	CHECK(compare(x, y, &why) == FP_DIFFERENT);
	snprintf(y, sizeof y, "%ssha1:0000000000000001", a);
	CHECK(compare(x, y, &why) == FP_INCOMPARABLE && !strcmp(why, "hash"));
	snprintf(x, sizeof x, "%smd5:0000000000000001", a);
	CHECK(compare(x, y, &why) == FP_INCOMPARABLE && !strcmp(why, "hash"));
	CHECK(compare(y, y, &why) == FP_SAME);
	snprintf(x, sizeof x, "%ssha1:0000000000000002", a);
	CHECK(compare(x, y, &why) == FP_DIFFERENT);
	snprintf(x, sizeof x, "%s\tslice=0:2", y);
	CHECK(compare(x, y, &why) == FP_INCOMPARABLE && !strcmp(why, "slice"));
	CHECK(compare("fp\tname=a\tdtype=i32\tshape=2\tbytes=8\thash=s:1",
		  "fp\tname=a\tdtype=f32\tshape=2\tbytes=8\thash=s:1",
		  &why) == FP_INCOMPARABLE &&
	      !strcmp(why, "dtype"));
	CHECK(compare("scalar\tname=a\tvtype=f64\tvalue=1.0",
		  "scalar\tname=a\tvtype=f64\tvalue=1", &why) == FP_DIFFERENT);
	/* Whatever else a scalar is: it is compared as text. */
	CHECK(compare("scalar\tname=a\tvtype=num\tvalue=1",
		  "scalar\tname=a\tvtype=null\tvalue=null",
		  &why) == FP_DIFFERENT);
	CHECK(compare(y, "scalar\tname=a\tvtype=f64\tvalue=1", &why) ==
	      FP_INCOMPARABLE);
}

static void
test_shape(void)
{
	uint64_t d[4];
	size_t n;
	CHECK(fp_shape(STR_LIT(""), d, 4, &n, NULL) == 0 && n == 0);
	CHECK(fp_shape(STR_LIT("7,0,2"), d, 4, &n, NULL) == 0 && n == 3 &&
	      d[0] == 7 && d[1] == 0 && d[2] == 2);
	const char *bad[] = { "[2]", "7,", ",7", "1,2,3,4,5", "-1", "1 ,2",
		NULL };
	for (int i = 0; bad[i]; i++)
		CHECK(fp_shape(str_c(bad[i]), d, 4, &n, NULL) < 0);
	struct buf b = { 0 };
	uint64_t dim[] = { 7, 0, 2 };
	fp_put_shape(&b, dim, 3);
	fp_put_shape(&b, dim, 0);
	CHECK(str_is(buf_view(&b), "7,0,2"));
	buf_free(&b);
}

int
main(void)
{
	test_round_trip();
	test_bad();
	test_key();
	test_compare();
	test_shape();
	return test_done("fp");
}
