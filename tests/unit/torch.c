/*
 * PyTorch files: those in tests/data/torch against what torch says is in
 * them, cut and damaged, and hand-made ones with every lie that is refused.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "esc.h"
#include "hash.h"
#include "tensor.h"
#include "test.h"
#include "zipmake.h"

#define DATA "tests/data/torch/"

static unsigned char scratch[64 << 10];

/* ---- reading what there is ----------------------------------------------- */

static int
add(void *user, const void *p, size_t len, struct err *e)
{
	hash_add(user, p, len);
	return 0;
}

/* One entry as a line of the manifest, without the file. */
static int
put_entry(struct buf *b, struct tensor *t, struct err *e)
{
	if (t->flags & TENSOR_SCALAR) {
		buf_puts(b, "scalar\t");
		esc_put(b, t->name);
		buf_printf(b, "\t%.*s\t", STR_ARG(t->vtype));
		esc_put(b, t->value);
		return 0;
	}
	buf_puts(b, "fp\t");
	esc_put(b, t->name);
	buf_printf(b, "\t%s\t", t->dtype->name);
	for (unsigned i = 0; i < t->ndim; i++)
		buf_printf(b, "%s%" PRIu64, i ? "," : "", t->shape[i]);
	struct hash *h = hash_new();
	int r = tensor_blocks(t, scratch, sizeof scratch, add, h, e);
	buf_printf(b, "\t%" PRIu64 "\t", t->bytes);
	u128_put(b, hash_value(h));
	hash_free(h);
	return r;
}

/* All entries, one a line; the first failure. */
static int
list_src(struct buf *b, struct src *src, const struct tensor_hints *hints,
    struct err *e)
{
	struct tensor_set set;
	e->code = 0;
	e->msg[0] = 0;
	int r = tensor_open(&set, src, hints, e);
	for (size_t i = 0; i < set.n; i++) {
		struct err one;
		size_t len = b->len;
		int s = put_entry(b, &set.t[i], r ? &one : e);
		if (s)
			b->len = len; /* no digest without all its bytes */
		else
			buf_putc(b, '\n');
		r = r ? r : s;
	}
	tensor_close(&set);
	return r;
}

static int
list_mem(struct buf *b, const void *p, size_t len, struct err *e)
{
	/* Named: damaged magic must not turn it into a file of bytes. */
	const struct tensor_hints hints = { .format = "torch", .dirfd = -1 };
	struct src *src = NULL;
	int r = src_open_mem(&src, p, len, e);
	if (!r)
		r = list_src(b, src, &hints, e);
	src_close(src);
	return r;
}

static int
list_file(struct buf *b, const char *name, struct err *e)
{
	char path[256];
	bool dir = str_ends(str_c(name), ".dcp");
	struct tensor_hints hints = { .dirfd = -1 };
	struct src *src = NULL;
	snprintf(path, sizeof path, DATA "%s", name);
	if (dir)
		hints.dirfd = open(path, O_RDONLY | O_DIRECTORY);
	if (dir)
		snprintf(path, sizeof path, DATA "%s/.metadata", name);
	int r = src_open(&src, path, NULL, 0, e);
	if (!r)
		r = list_src(b, src, &hints, e);
	src_close(src);
	if (hints.dirfd >= 0)
		close(hints.dirfd);
	return r;
}

static char *
slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	if (!CHECK(f != NULL))
		exit(1);
	char *p = malloc(1 << 20);
	*len = fread(p, 1, 1 << 20, f);
	fclose(f);
	return p;
}

static bool
has_line(const struct buf *b, struct str line)
{
	struct str rest = buf_view(b), one;
	while (str_cut(&rest, '\n', &one))
		if (str_same(one, line))
			return true;
	return false;
}

static size_t
count_lines(const struct buf *b, const char *start)
{
	struct str rest = buf_view(b), one;
	size_t n = 0;
	while (str_cut(&rest, '\n', &one))
		n += str_starts(one, start);
	return n;
}

/* Every line of the manifest is there, and no tensor that is not in it. */
static void
test_manifest(void)
{
	size_t len, lines = 0, tensors = 0, seen = 0;
	char *text = slurp(DATA "manifest", &len);
	struct str rest = { text, len }, line, file, now = STR_LIT("");
	struct buf got = { 0 };
	while (str_cut(&rest, '\n', &line) && line.len) {
		struct str tail = line;
		str_cut(&tail, '\t', &file);
		if (!str_same(file, now)) {
			char name[64];
			struct err e;
			snprintf(name, sizeof name, "%.*s", STR_ARG(file));
			CHECK(seen == tensors);
			now = file;
			got.len = 0;
			if (!CHECK(list_file(&got, name, &e) == 0))
				fprintf(stderr, "%s: %s\n", name, e.msg);
			tensors = count_lines(&got, "fp\t");
			seen = 0;
		}
		if (!CHECK(has_line(&got, tail)))
			fprintf(stderr, "no: %.*s\n", STR_ARG(line));
		seen += str_starts(tail, "fp\t");
		lines++;
	}
	CHECK(seen == tensors);
	CHECK(lines > 40);
	buf_free(&got);
	free(text);
}

/* ---- cut and damaged ------------------------------------------------------
 */

static const char *const whole[] = { "small-zip2.pt", "small-zip4.pt",
	"small-legacy2.pt", "small-legacy4.pt", "names.pt", "wrap.pt",
	"conj.pt", "big.pt" };

/* No digest that is not one of the whole file's. */
static bool
only_lines_of(const struct buf *all, const struct buf *some)
{
	struct str rest = buf_view(some), one;
	while (str_cut(&rest, '\n', &one))
		if (one.len && !has_line(all, one))
			return false;
	return true;
}

/*
 * The longer the rest, the more is whole. Of a zip file that lacks only its
 * last byte everything is, although it has no directory.
 */
static void
test_cut(const char *name)
{
	char path[256];
	size_t len, seen = 0;
	struct buf all = { 0 }, got = { 0 };
	struct err e;
	snprintf(path, sizeof path, DATA "%s", name);
	char *p = slurp(path, &len);
	bool zip = !memcmp(p, "PK", 2);
	CHECK(list_mem(&all, p, len, &e) == 0);
	for (size_t n = 0; n < len; n++) {
		char *cut = malloc(n ? n : 1);
		memcpy(cut, p, n);
		got.len = 0;
		CHECK(list_mem(&got, cut, n, &e) < 0);
		CHECK(e.msg[0]);
		CHECK(only_lines_of(&all, &got));
		size_t now = count_lines(&got, "fp\t");
		CHECK(now >= seen);
		CHECK(!now || strstr(e.msg, "last whole tensor: ") != NULL);
		seen = now;
		free(cut);
	}
	CHECK(seen > 0);
	CHECK(!zip || str_same(buf_view(&all), buf_view(&got)));
	buf_free(&all);
	buf_free(&got);
	free(p);
}

/*
 * In a zip file everything that matters has a CRC: a changed byte is refused
 * or changes nothing. The legacy form has none; it must only not crash.
 */
static void
test_flip(const char *name)
{
	char path[256];
	size_t len;
	struct buf all = { 0 }, got = { 0 };
	struct err e;
	snprintf(path, sizeof path, DATA "%s", name);
	char *p = slurp(path, &len);
	bool zip = !memcmp(p, "PK", 2);
	CHECK(list_mem(&all, p, len, &e) == 0);
	for (size_t i = 0; i < len; i++) {
		char old = p[i];
		static const int flips[] = { 1, 0x10, 0x80, 0xff };
		for (int k = 0; k < 4; k++) {
			p[i] = (char)(old ^ flips[k]);
			got.len = 0;
			int r = list_mem(&got, p, len, &e);
			CHECK(r || !zip ||
			      str_same(buf_view(&all), buf_view(&got)));
		}
		p[i] = old;
	}
	buf_free(&all);
	buf_free(&got);
	free(p);
}

/* Without its end, and damaged: still no digest that is not right. */
static void
test_cut_and_flip(const char *name)
{
	char path[256];
	size_t len;
	struct buf all = { 0 }, got = { 0 };
	struct err e;
	snprintf(path, sizeof path, DATA "%s", name);
	char *p = slurp(path, &len);
	CHECK(list_mem(&all, p, len, &e) == 0);
	for (size_t i = 0; i < len - 1; i++) {
		p[i] ^= 0x21;
		got.len = 0;
		CHECK(list_mem(&got, p, len - 1, &e) < 0);
		CHECK(only_lines_of(&all, &got));
		p[i] ^= 0x21;
	}
	buf_free(&all);
	buf_free(&got);
	free(p);
}

/* The count in front of a legacy storage against the pickle's. */
static void
test_legacy_count(void)
{
	static const char six[8] = { 6 };
	size_t len, at;
	struct buf got = { 0 };
	struct err e;
	char *p = slurp(DATA "small-legacy2.pt", &len);
	for (at = len - 8; at && memcmp(p + at, six, 8); at--)
		;
	CHECK(at > 0);
	p[at] = 7;
	CHECK(list_mem(&got, p, len, &e) == SE_EFORMAT);
	CHECK(strstr(e.msg, "the pickle says 6 elements") != NULL);
	buf_free(&got);
	free(p);
}

/* ---- hand-made ------------------------------------------------------------
 */

#define REF(cls, key, numel)                                       \
	"(U\7storagectorch\n" cls "\nU\1" key "U\3cpuI" numel "\n" \
	"tQ"
#define F32(numel) REF("FloatStorage", "0", numel)
#define REBUILD "ctorch._utils\n_rebuild_tensor_v2\n"
#define HOOKS  \
	"\x89" \
	"ccollections\nOrderedDict\n)R"
/* storage, offset, (size), (stride) */
#define TENSOR(ref, off, size, stride) \
	REBUILD "(" ref "I" off "\n(" size "t(" stride "t" HOOKS "tR"
#define DICT(value) "}U\1x" value "s."
#define V3(ref, dtype)                                                      \
	"ctorch._utils\n_rebuild_tensor_v3\n(" ref "I0\n(I2\nt(I1\nt" HOOKS \
	"ctorch\n" dtype "\ntR"

static void
make(struct zipmake *z, const void *pkl, size_t len, size_t storage)
{
	static unsigned char data[4096];
	*z = (struct zipmake){ 0 };
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i * 7);
	zipmake_add(z, "t/data.pkl", pkl, len, 0);
	zipmake_add(z, "t/data/0", data, storage, 0);
	zipmake_end(z, 0);
}

#define BYTES(s) s, sizeof(s) - 1

/* The storage has 24 bytes: six floats. */
static const struct {
	const char *p;
	size_t len;
	int code;
	const char *text;
} lies[] = {
	/* numel * 4 wraps to 4 (pytorch PR 181310), storage size differs */
	{ BYTES(DICT(TENSOR(F32("4611686018427387905"), "0", "I1\n", "I1\n"))),
	    SE_EFORMAT, "the pickle says 4611686018427387905 elements" },
	{ BYTES(DICT(TENSOR(F32("7"), "0", "I6\n", "I1\n"))), SE_EFORMAT,
	    "7 elements of 4 bytes, it has 24 bytes" },
	{ BYTES(DICT(TENSOR(F32("5"), "0", "I5\n", "I1\n"))), SE_EFORMAT,
	    "5 elements" },
	{ BYTES(DICT(TENSOR(F32("-1"), "0", "I1\n", "I1\n"))), SE_EFORMAT,
	    "size in the persistent id" },
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I7\n", "I1\n"))), SE_EFORMAT,
	    "need 28 bytes, it has 24" },
	{ BYTES(DICT(TENSOR(F32("6"), "1", "I6\n", "I1\n"))), SE_EFORMAT,
	    "need 28 bytes" },
	{ BYTES(DICT(TENSOR(F32("6"), "6", "I1\n", "I1\n"))), SE_EFORMAT,
	    "need 28 bytes" },
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I2\nI3\n", "I4\nI1\n"))),
	    SE_EFORMAT, "need 28 bytes" },
	{ BYTES(DICT(TENSOR(F32("6"), "4611686018427387904", "I1\n", "I1\n"))),
	    SE_EFORMAT, "overflow" },
	{ BYTES(DICT(TENSOR(F32("6"), "9223372036854775807", "I2\n", "I1\n"))),
	    SE_EFORMAT, "overflow" },
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I3\n", "I9223372036854775807\n"))),
	    SE_EFORMAT, "overflow" },
	{ BYTES(DICT(TENSOR(F32("6"), "-1", "I1\n", "I1\n"))), SE_EFORMAT,
	    "offset of 0 or more" },
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I-1\n", "I1\n"))), SE_EFORMAT,
	    "0 or more for the sizes" },
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I2\n", "I-1\n"))), SE_EFORMAT,
	    "0 or more for the strides" },
	{ BYTES(DICT(TENSOR(F32("6"), "0", "N", "I1\n"))), SE_EFORMAT,
	    "integers" },
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I2\n", ""))), SE_EFORMAT,
	    "1 sizes and 0 strides" },
	/* 2^40 elements out of one: refused, not hashed for hours */
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I1099511627776\n", "I0\n"))),
	    SE_ELIMIT, "expanded" },
	{ BYTES(DICT(
	      TENSOR(F32("6"), "0", "I4294967296\nI4294967296\n", "I0\nI0\n"))),
	    SE_EFORMAT, "overflow" },
	{ BYTES(
	      DICT(TENSOR(REF("FloatStorage", "1", "6"), "0", "I6\n", "I1\n"))),
	    SE_EFORMAT, "at x: storage 1: is not in the archive" },
	{ BYTES(DICT(
	      TENSOR(REF("StrangeStorage", "0", "6"), "0", "I6\n", "I1\n"))),
	    SE_EUNSUP, "unknown type of storage" },
	{ BYTES(DICT(TENSOR("N", "0", "I6\n", "I1\n"))), SE_EFORMAT,
	    "expected a persistent id" },
	{ BYTES(DICT(TENSOR("(U\7storageNtQ", "0", "I6\n", "I1\n"))),
	    SE_EFORMAT, "persistent id ('storage'" },
	{ BYTES(DICT(REBUILD "(" F32("6") "tR")), SE_EFORMAT,
	    "1 arguments, expected 6" },
	{ BYTES(DICT(V3(F32("6"), "float9"))), SE_EUNSUP, "unknown dtype" },
	{ BYTES(DICT(V3(F32("6"), "complex128"))), SE_EFORMAT,
	    "need 32 bytes" },
	/* What loading would do to the tensor afterwards. */
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I6\n", "I1\n") "K\0K\1s")),
	    SE_EFORMAT, "items or state set on the result" },
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I6\n", "I1\n") "}b")), SE_EFORMAT,
	    "items or state" },
	{ BYTES(DICT(TENSOR(F32("6"), "0", "I6\n", "I1\n") "Na")), SE_EFORMAT,
	    "items or state" },
	{ BYTES("}(U\1xK\1U\1xK\2u."), SE_EFORMAT, "key x: twice in one dict" },
	{ BYTES("}(K\1K\1K\1K\2u."), SE_EFORMAT, "twice in one dict" },
	{ BYTES("}(}NU\1xK\2u."), SE_EUNSUP, "cannot be written as text" },
	{ BYTES("N.x"), SE_EFORMAT, "1 bytes after the pickle" },
	{ BYTES("N"), SE_EFORMAT,
	    "zip member t/data.pkl: pickle byte 1: ends" },
	{ BYTES("cos\nsystem\n(U\2idios\nx\n."), SE_EUNSUP, "INST" },
};

static void
test_lies(void)
{
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		struct zipmake z;
		struct buf got = { 0 };
		struct err e;
		make(&z, lies[i].p, lies[i].len, 24);
		int r = list_mem(&got, z.out.p, z.out.len, &e);
		if (!CHECK(r == lies[i].code && strstr(e.msg, lies[i].text)))
			fprintf(stderr,
			    "case %zu: %d \"%s\", expected \"%s\"\n", i, r,
			    e.msg, lies[i].text);
		CHECK(count_lines(&got, "fp\t") == 0);
		buf_free(&got);
		zipmake_free(&z);
	}
}

static int
list_pickle(struct buf *got, const void *p, size_t len, struct err *e)
{
	struct zipmake z;
	make(&z, p, len, 24);
	int r = list_mem(got, z.out.p, z.out.len, e);
	zipmake_free(&z);
	return r;
}

/* A dict in a dict, each twice: 2^40 ways; and one that holds itself. */
static void
test_graphs(void)
{
	struct buf b = { 0 }, got = { 0 };
	struct err e;
	buf_puts(&b, "]N"
		     "a");
	for (int i = 0; i < 40; i++)
		buf_puts(&b, "2\x86");
	buf_putc(&b, '.');
	CHECK(list_pickle(&got, b.p, b.len, &e) == SE_ELIMIT);
	CHECK(strstr(e.msg, "unfold to more than") != NULL);

	b.len = 0;
	for (int i = 0; i < 100000; i++)
		buf_putc(&b, ']');
	for (int i = 1; i < 100000; i++)
		buf_putc(&b, 'a');
	buf_putc(&b, '.');
	got.len = 0;
	CHECK(list_pickle(&got, b.p, b.len, &e) == SE_ELIMIT);
	CHECK(strstr(e.msg, "nested more than") != NULL);

	/* Depth without names: parameters of parameters. */
	b.len = 0;
	for (int i = 0; i < 100000; i++)
		buf_puts(&b, "ctorch.nn.parameter\nParameter\n");
	buf_putc(&b, 'N');
	for (int i = 0; i < 100000; i++)
		buf_puts(&b, "\x85R");
	buf_putc(&b, '.');
	got.len = 0;
	CHECK(list_pickle(&got, b.p, b.len, &e) == SE_ELIMIT);

	static const char self[] = "}q\0U\1xh\0s.";
	got.len = 0;
	CHECK(list_pickle(&got, self, sizeof self - 1, &e) == 0);
	CHECK(str_is(buf_view(&got), "scalar\tx\tcycle\t\n"));

	/* A shared list is seen under both names. */
	static const char shared[] = "}(U\1a]q\0K\7aU\1bh\0u.";
	got.len = 0;
	CHECK(list_pickle(&got, shared, sizeof shared - 1, &e) == 0);
	CHECK(str_is(
	    buf_view(&got), "scalar\ta.0\ti64\t7\nscalar\tb.0\ti64\t7\n"));
	buf_free(&b);
	buf_free(&got);
}

/* Nothing is run, whatever it is called. */
static void
test_harmless(void)
{
	static const char call[] =
	    "cos\nsystem\n(U\x1etouch /tmp/straightedge-owned-tR.";
	struct buf got = { 0 };
	struct err e;
	CHECK(list_pickle(&got, call, sizeof call - 1, &e) == 0);
	CHECK(has_line(&got, STR_LIT("scalar\t\tobject\tos.system")));
	CHECK(access("/tmp/straightedge-owned-", F_OK) != 0);
	buf_free(&got);
}

/* A damaged storage gives no digest, by whichever view it is read. */
static void
test_crc(void)
{
	static const char *const views[] = {
		DICT(TENSOR(F32("6"), "0", "I6\n", "I1\n")),
		DICT(TENSOR(F32("6"), "0", "I3\nI2\n", "I1\nI3\n")),
		DICT(TENSOR(F32("6"), "0", "I2\n", "I1\n")),
		DICT(TENSOR(F32("6"), "4", "I2\n", "I1\n")),
		DICT(TENSOR(F32("6"), "0", "I2\nI2\n", "I3\nI1\n")),
	};
	for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
		struct zipmake z;
		struct buf got = { 0 };
		struct err e;
		make(&z, views[i], strlen(views[i]), 24);
		CHECK(list_mem(&got, z.out.p, z.out.len, &e) == 0);
		CHECK(count_lines(&got, "fp\t") == 1);
		/* The last byte of the storage, whoever looks at it. */
		z.out.p[z.dir_off - 1] ^= 1;
		int r = list_mem(&got, z.out.p, z.out.len, &e);
		CHECK(r == SE_EFORMAT);
		CHECK(strstr(e.msg,
			  "zip member t/data/0: content has CRC-32") != NULL);
		buf_free(&got);
		zipmake_free(&z);
	}
}

static void
test_storage_keys(void)
{
	static const char tied[] = "}(U\1a" TENSOR(F32("6"), "0", "I6\n",
	    "I1\n") "U\1b" TENSOR(F32("6"), "2", "I2\n", "I2\n") "u.";
	struct zipmake z;
	struct src *src;
	struct err e;
	struct tensor_set set;
	make(&z, tied, sizeof tied - 1, 24);
	CHECK(!src_open_mem(&src, z.out.p, z.out.len, &e));
	CHECK(tensor_open(&set, src, NULL, &e) == 0);
	CHECK(!strcmp(set.format->name, "torch"));
	if (CHECK(set.n == 2)) {
		CHECK(str_is(set.t[0].storage, "0"));
		CHECK(str_is(set.t[1].storage, "0"));
		CHECK(set.t[1].off == set.t[0].off + 8);
		CHECK(set.t[0].stride == NULL && set.t[1].stride[0] == 2);
	}
	tensor_close(&set);
	src_close(src);
	zipmake_free(&z);
}

static void
test_archives(void)
{
	static const struct {
		const char *name;
		int code;
		const char *text;
	} files[] = {
		{ "t/code/x.py", SE_EFORMAT, "without data.pkl" },
		{ "t/constants.pkl", SE_EUNSUP, "TorchScript" },
		{ "t/model.json", SE_EUNSUP, "TorchScript" },
		{ "data.pkl", SE_EFORMAT, "without data.pkl" },
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct zipmake z = { 0 };
		struct buf got = { 0 };
		struct err e;
		zipmake_add(&z, files[i].name, "N.", 2, 0);
		zipmake_end(&z, 0);
		CHECK(list_mem(&got, z.out.p, z.out.len, &e) == files[i].code);
		CHECK(strstr(e.msg, files[i].text) != NULL);
		buf_free(&got);
		zipmake_free(&z);
	}
	/* Two folders: which one a loader takes is its own business. */
	struct zipmake z = { 0 };
	struct buf got = { 0 };
	struct err e;
	zipmake_add(&z, "a/data.pkl", "N.", 2, 0);
	zipmake_add(&z, "b/data.pkl", "N.", 2, 0);
	zipmake_end(&z, 0);
	CHECK(list_mem(&got, z.out.p, z.out.len, &e) == SE_EFORMAT);
	CHECK(strstr(e.msg, "b/data.pkl: is not in the folder") != NULL);
	zipmake_free(&z);

	z = (struct zipmake){ 0 };
	zipmake_add(&z, "a/data.pkl", "N.", 2, 0);
	zipmake_add(&z, "a/byteorder", "middle", 6, 0);
	zipmake_end(&z, 0);
	CHECK(list_mem(&got, z.out.p, z.out.len, &e) == SE_EFORMAT);
	CHECK(strstr(e.msg, "neither little nor big") != NULL);
	zipmake_free(&z);
	buf_free(&got);
}

static void
test_tar(void)
{
	unsigned char tar[1024] = "storages";
	struct buf got = { 0 };
	struct err e;
	struct src *src;
	memcpy(tar + 257, "ustar", 5);
	CHECK(!src_open_mem(&src, tar, sizeof tar, &e));
	CHECK(list_src(&got, src, NULL, &e) == SE_EUNSUP);
	CHECK(strstr(e.msg, "before 0.1.10") != NULL);
	src_close(src);
	/* Any other tar file is just bytes. */
	tar[0] = 'x';
	CHECK(!src_open_mem(&src, tar, sizeof tar, &e));
	CHECK(list_src(&got, src, NULL, &e) == 0);
	src_close(src);
	buf_free(&got);
}

/* ---- distributed ----------------------------------------------------------
 */

static const char *const parts[] = { ".metadata", "__0_0.distcp",
	"__1_0.distcp" };

static void
write_part(const char *dir, int i, const void *p, size_t len)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", dir, parts[i]);
	FILE *f = fopen(path, "wb");
	if (!CHECK(f != NULL))
		exit(1);
	fwrite(p, 1, len, f);
	fclose(f);
}

/* A copy of two.dcp. */
static void
copy_dir(const char *dir)
{
	for (int i = 0; i < 3; i++) {
		char path[300];
		size_t n;
		snprintf(path, sizeof path, DATA "two.dcp/%s", parts[i]);
		char *own = slurp(path, &n);
		write_part(dir, i, own, n);
		free(own);
	}
}

static int
list_dir(struct buf *got, const char *dir, struct err *e)
{
	char path[300];
	struct tensor_hints hints = { .dirfd = -1, .format = "dcp" };
	struct src *src = NULL;
	snprintf(path, sizeof path, "%s/.metadata", dir);
	hints.dirfd = open(dir, O_RDONLY | O_DIRECTORY);
	int r = src_open(&src, path, NULL, SRC_PLAIN, e);
	if (!r)
		r = list_src(got, src, &hints, e);
	src_close(src);
	close(hints.dirfd);
	return r;
}

/* Replaces the first `from` by `to`, of equal length. */
static void
replace(char *p, size_t len, const char *from, const char *to)
{
	size_t n = strlen(from);
	for (size_t i = 0; i + n <= len; i++) {
		if (memcmp(p + i, from, n))
			continue;
		memcpy(p + i, to, n);
		return;
	}
	CHECK(!"the text to replace");
}

static void
test_dcp_paths(const char *dir)
{
	static const char *const bad[] = { "../../passwd", "/etc/.passwd",
		"sub/x.distcp", "./__0.distcp" };
	char path[300];
	copy_dir(dir);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		size_t len;
		struct buf got = { 0 };
		struct err e;
		char *meta = slurp(DATA "two.dcp/.metadata", &len);
		replace(meta, len, "__0_0.distcp", bad[i]);
		write_part(dir, 0, meta, len);
		CHECK(list_dir(&got, dir, &e) == SE_EFORMAT);
		CHECK(strstr(e.msg, "not a plain file name") != NULL);
		free(meta);
		buf_free(&got);
	}
	/* A link to the very file is still not followed. */
	struct buf got = { 0 };
	struct err e;
	copy_dir(dir);
	snprintf(path, sizeof path, "%s/__1_0.distcp", dir);
	unlink(path);
	CHECK(!symlink("__0_0.distcp", path));
	CHECK(list_dir(&got, dir, &e) == SE_ETRUNC);
	unlink(path);
	/* What lies in the other file is read. */
	got.len = 0;
	CHECK(list_dir(&got, dir, &e) == SE_ETRUNC);
	CHECK(strstr(e.msg, "file __1_0.distcp") != NULL);
	CHECK(count_lines(&got, "fp\tmodel.w\t") == 1);
	CHECK(count_lines(&got, "fp\tmodel.b\t") == 0);
	CHECK(count_lines(&got, "scalar\tstep\t") == 1);
	buf_free(&got);
}

static void
test_dcp_lies(const char *dir)
{
	static const struct {
		const char *from, *to;
		int code;
		const char *text;
	} bad[] = {
		{ "StorageInfo", "StorageInfX", SE_EFORMAT, "_StorageInfo" },
		{ "\nMetadata\n", "\nMetadatX\n", SE_EUNSUP,
		    "expected Metadata" },
	};
	copy_dir(dir);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		size_t len;
		struct buf got = { 0 };
		struct err e;
		char *meta = slurp(DATA "two.dcp/.metadata", &len);
		replace(meta, len, bad[i].from, bad[i].to);
		write_part(dir, 0, meta, len);
		int r = list_dir(&got, dir, &e);
		if (!CHECK(r == bad[i].code && strstr(e.msg, bad[i].text)))
			fprintf(stderr, "%s: %d %s\n", bad[i].to, r, e.msg);
		free(meta);
		buf_free(&got);
	}
}

/* .metadata that leaves out, repeats, or says it is compressed. */
static void
test_dcp_described(const char *dir)
{
	static const struct {
		const char *name;
		int code;
		const char *text;
	} bad[] = {
		{ "short", SE_ETRUNC,
		    "7 parts of tensors are in storage_data, "
		    ".metadata describes 8" },
		{ "twice", SE_EFORMAT, "item model.w: stored twice" },
		{ "object-twice", SE_EFORMAT, "item blob: stored twice" },
		{ "packed", SE_EUNSUP, "item model.w: stored with transforms" },
	};
	copy_dir(dir);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char path[300];
		size_t len;
		struct buf got = { 0 };
		struct err e;
		snprintf(path, sizeof path, DATA "%s.metadata", bad[i].name);
		char *meta = slurp(path, &len);
		write_part(dir, 0, meta, len);
		int r = list_dir(&got, dir, &e);
		if (!CHECK(
			r == bad[i].code && strstr(e.msg, bad[i].text) != NULL))
			fprintf(stderr, "%s: %d %s\n", bad[i].name, r, e.msg);
		free(meta);
		buf_free(&got);
	}
}

static void
test_dcp_damage(const char *dir)
{
	struct buf all = { 0 }, got = { 0 };
	struct err e;
	copy_dir(dir);
	CHECK(list_dir(&all, dir, &e) == 0);
	for (int which = 0; which < 3; which++) {
		char path[300];
		size_t len;
		snprintf(path, sizeof path, DATA "two.dcp/%s", parts[which]);
		char *p = slurp(path, &len);
		for (size_t n = 0; n < len; n += 1 + len / 200) {
			write_part(dir, which, p, n);
			got.len = 0;
			CHECK(list_dir(&got, dir, &e) < 0);
			CHECK(only_lines_of(&all, &got));
		}
		for (size_t i = 0; i < len; i += 1 + len / 400) {
			p[i] ^= 0x11;
			write_part(dir, which, p, len);
			got.len = 0;
			int r = list_dir(&got, dir, &e);
			/* .metadata has no checksum of its own. */
			CHECK(r || which == 0 || only_lines_of(&all, &got) ||
			      strstr(got.p, "plain\t") ||
			      strstr(got.p, "blob"));
			p[i] ^= 0x11;
		}
		write_part(dir, which, p, len);
		free(p);
	}
	buf_free(&all);
	buf_free(&got);
}

static void
test_dcp_find(const char *dir)
{
	char path[300];
	struct err e;
	copy_dir(dir);
	CHECK(tensor_dcp_find(dir, &e) == 1);
	/* Another tool's file of that name speaks for nothing. */
	write_part(dir, 0, "hello", 5);
	CHECK(tensor_dcp_find(dir, &e) == 0);
	snprintf(path, sizeof path, "%s/.metadata", dir);
	unlink(path);
	CHECK(tensor_dcp_find(dir, &e) == SE_ETRUNC);
	CHECK(strstr(e.msg, "did not finish") != NULL);
	for (int i = 1; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, parts[i]);
		unlink(path);
	}
	CHECK(tensor_dcp_find(dir, &e) == 0);
}

int
main(void)
{
	char dir[] = "/tmp/straightedge-test-XXXXXX";
	test_manifest();
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		test_cut(whole[i]);
		test_flip(whole[i]);
	}
	test_cut_and_flip("small-zip2.pt");
	test_cut_and_flip("names.pt");
	test_legacy_count();
	test_lies();
	test_graphs();
	test_harmless();
	test_crc();
	test_storage_keys();
	test_archives();
	test_tar();
	if (!CHECK(mkdtemp(dir) != NULL))
		return 1;
	test_dcp_paths(dir);
	test_dcp_lies(dir);
	test_dcp_described(dir);
	test_dcp_damage(dir);
	test_dcp_find(dir);
	rmdir(dir);
	return test_done("unit torch");
}
