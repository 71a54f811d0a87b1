/*
 * INPUT: tensor formats. Without arguments: the samples of
 * tests/data/formats against what numpy says is in them, cut at every length,
 * every byte flipped, through a pipe; and hostile files built here.
 * With arguments, [-t FORMAT] [-s STEP] FILE...: prints what is in the files,
 * one line a tensor as in expected.tsv, for comparison with numpy.
 */
#include "test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esc.h"
#include "gzip.h"
#include "tensor.h"
#include "zipmake.h"

#define DATA "tests/data/formats/"
enum { SCRATCH = 64 << 10 };

static unsigned char scratch[SCRATCH];

static int
add_crc(void *user, const void *p, size_t len, struct err *e)
{
	uint64_t *sum = user;
	sum[0] = gzip_crc32((uint32_t)sum[0], p, len);
	sum[1] += len;
	return 0;
}

static int
list_entry(struct buf *out, const char *file, struct tensor *t, struct err *e)
{
	uint64_t sum[2] = { 0 };
	if (t->flags & TENSOR_LEFT_OUT) {
		buf_printf(out, "left out: %.*s\n", STR_ARG(t->value));
		return 0;
	}
	if (t->flags & TENSOR_SCALAR) {
		buf_printf(out, "%s\t", file);
		esc_put(out, t->name);
		buf_printf(out, "\t%.*s\t", STR_ARG(t->vtype));
		esc_put(out, t->step);
		buf_putc(out, '\t');
		esc_put(out, t->value);
		buf_putc(out, '\n');
		return 0;
	}
	int r = tensor_blocks(t, scratch, sizeof scratch, add_crc, sum, e);
	if (r)
		return r;
	if (sum[1] != t->bytes)
		return err_set(e, SE_EINVAL, "blocks do not add up");
	buf_printf(out, "%s\t", file);
	esc_put(out, t->name);
	buf_printf(out, "\t%s\t", t->dtype->name);
	for (unsigned i = 0; i < t->ndim; i++)
		buf_printf(out, "%s%" PRIu64, i ? "," : "", t->shape[i]);
	buf_printf(out, "\t%" PRIu64 "\t%08" PRIx64 "\n", t->bytes, sum[0]);
	return 0;
}

/* All of a source as text; what came before a failure stays in `out`. */
static int
list(struct buf *out, const char *file, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	struct tensor_set set;
	int r = tensor_open(&set, src, hints, e);
	while (!r && (r = tensor_next(&set, e)) > 0) {
		r = 0;
		for (size_t i = 0; !r && i < set.n; i++)
			r = list_entry(out, file, &set.t[i], e);
	}
	if (!r)
		r = tensor_finish(&set, e);
	tensor_close(&set);
	return r;
}

static int
list_mem(struct buf *out, const char *file, const void *p, size_t len,
    const struct tensor_hints *hints, struct err *e)
{
	struct src *src;
	/* A copy of the very size, so that a sanitizer sees a byte too far. */
	unsigned char *copy = malloc(len ? len : 1);
	if (len)
		memcpy(copy, p, len);
	int r = src_open_mem(&src, copy, len, e);
	if (!r) {
		r = list(out, file, src, hints, e);
		src_close(src);
	}
	free(copy);
	return r;
}

static int
list_pipe(struct buf *out, const char *file, const void *p, size_t len,
    const struct tensor_hints *hints, struct err *e)
{
	struct src *src;
	int fd[2];
	if (pipe(fd))
		return err_sys(e, "pipe");
	/* Small enough for the pipe's own buffer. */
	ssize_t n = write(fd[1], p, len);
	close(fd[1]);
	int r =
	    n == (ssize_t)len ? src_open_fd(&src, fd[0], NULL, 0, e) : SE_EIO;
	if (r) {
		close(fd[0]);
		return r;
	}
	r = list(out, file, src, hints, e);
	src_close(src);
	return r;
}

static void
load(struct buf *b, const char *path)
{
	struct src *src;
	struct err e;
	char block[4096];
	size_t n;
	b->len = 0;
	if (!CHECK(!src_open(&src, path, NULL, SRC_PLAIN, &e)))
		return;
	do {
		n = 0;
		CHECK(!src_read_some(src, b->len, block, sizeof block, &n, &e));
		buf_add(b, block, n);
	} while (n);
	src_close(src);
}

/* The lines of `all` that begin with `file` and a TAB. */
static void
lines_of(struct buf *to, struct str all, struct str file)
{
	struct str line;
	to->len = 0;
	while (str_cut(&all, '\n', &line)) {
		if (line.len <= file.len || line.p[file.len] != '\t' ||
		    memcmp(line.p, file.p, file.len))
			continue;
		buf_str(to, line);
		buf_putc(to, '\n');
	}
}

typedef void each_file(
    const char *file, const struct buf *content, const struct buf *expected);

/* Every file of expected.tsv, once. */
static void
for_each_file(each_file *fn)
{
	struct buf all = { 0 }, content = { 0 }, want = { 0 };
	char last[100] = "", path[200];
	load(&all, DATA "expected.tsv");
	struct str rest = buf_view(&all), line;
	while (str_cut(&rest, '\n', &line)) {
		struct str tail = line, file;
		if (!line.len || !str_cut(&tail, '\t', &file) ||
		    str_is(file, last))
			continue;
		snprintf(last, sizeof last, "%.*s", STR_ARG(file));
		snprintf(path, sizeof path, DATA "%s", last);
		load(&content, path);
		lines_of(&want, buf_view(&all), file);
		fn(last, &content, &want);
	}
	buf_free(&all);
	buf_free(&content);
	buf_free(&want);
}

/* The directory of an index; -1 for the others. */
static int sharded = -1;

static struct tensor_hints
hints_for(const char *file, bool force)
{
	struct tensor_hints h = { .dirfd = -1 };
	const char *dot = strrchr(file, '.');
	if (force)
		h.format = !dot                          ? "bytes"
			   : str_is(str_c(dot), ".json") ? "index"
							 : dot + 1;
	if (strchr(file, '/'))
		h.dirfd = sharded;
	return h;
}

/* ---- samples ----------------------------------------------------------- */

static bool
has_line(const struct buf *text, struct str wanted)
{
	struct str rest = buf_view(text), line;
	while (str_cut(&rest, '\n', &line))
		if (str_same(line, wanted))
			return true;
	return false;
}

static bool
is_kv(struct str line)
{
	struct str file;
	str_cut(&line, '\t', &file);
	return str_starts(line, "kv:");
}

/* Scalars are checked elsewhere. */
static bool
same_tensors(struct buf *got, const struct buf *want, const char *file)
{
	struct buf kept = { 0 };
	struct str rest = buf_view(got), line;
	while (str_cut(&rest, '\n', &line)) {
		if (line.len && !is_kv(line)) {
			buf_str(&kept, line);
			buf_putc(&kept, '\n');
		}
	}
	bool same = str_same(buf_view(&kept), buf_view(want));
	if (!same)
		fprintf(stderr, "%s:\ngot\n%swanted\n%s", file, buf_cstr(&kept),
		    buf_cstr((struct buf *)want));
	buf_free(&kept);
	return same;
}

static void
check_sample(
    const char *file, const struct buf *content, const struct buf *want)
{
	struct tensor_hints hints = hints_for(file, false);
	struct buf got = { 0 };
	struct err e = { 0 };
	if (!CHECK(!list_mem(&got, file, content->p, content->len, &hints, &e)))
		fprintf(stderr, "%s: %s\n", file, e.msg);
	CHECK(same_tensors(&got, want, file));
	got.len = 0;
	if (!CHECK(
		!list_pipe(&got, file, content->p, content->len, &hints, &e)))
		fprintf(stderr, "%s: pipe: %s\n", file, e.msg);
	CHECK(same_tensors(&got, want, file));
	buf_free(&got);
}

/*
 * Cut anywhere: an error, and only lines that the whole file has as well.
 * Only the padding at the very end of a GGUF may be missing.
 */
static void
check_cut(const char *file, struct buf *got, int r, size_t len,
    const struct buf *want)
{
	bool padding =
	    strstr(file, ".gguf") && !r && same_tensors(got, want, file);
	if (!CHECK(r < 0 || padding))
		fprintf(stderr, "%s cut at %zu\n", file, len);
	struct str rest = buf_view(got), line;
	while (str_cut(&rest, '\n', &line))
		if (line.len && !is_kv(line))
			CHECK(has_line(want, line));
}

static void
check_cuts(const char *file, const struct buf *content, const struct buf *want)
{
	struct tensor_hints hints = hints_for(file, true);
	struct buf got = { 0 };
	struct err e;
	for (size_t len = 0; len < content->len; len++) {
		got.len = 0;
		int r = list_mem(&got, file, content->p, len, &hints, &e);
		check_cut(file, &got, r, len, want);
		/* Pipes are slow to make: a fifth of them in larger files. */
		if (len > 600 && len % 5)
			continue;
		got.len = 0;
		r = list_pipe(&got, file, content->p, len, &hints, &e);
		check_cut(file, &got, r, len, want);
	}
	buf_free(&got);
}

/* Any byte changed: no crash, no hang; a sanitizer looks on. */
static void
check_flips(const char *file, const struct buf *content, const struct buf *want)
{
	struct tensor_hints hints = hints_for(file, true);
	struct buf got = { 0 }, copy = { 0 };
	struct err e;
	buf_str(&copy, buf_view(content));
	for (size_t i = 0; i < copy.len; i++)
		for (unsigned mask = 1; mask <= 0xff; mask += 0x7f) {
			copy.p[i] = (char)(copy.p[i] ^ mask);
			got.len = 0;
			(void)list_mem(
			    &got, file, copy.p, copy.len, &hints, &e);
			test_checks++;
			copy.p[i] = (char)(copy.p[i] ^ mask);
		}
	buf_free(&got);
	buf_free(&copy);
}

/* ---- files built here -------------------------------------------------- */

/* Opens bytes as `format` and expects this failure. */
static void
refuse_bytes(const char *format, const void *p, size_t len, int code,
    const char *message, int line)
{
	struct tensor_hints hints = { .format = format, .dirfd = -1 };
	struct buf got = { 0 };
	struct err e = { 0 };
	int r = list_mem(&got, "x", p, len, &hints, &e);
	if (!CHECK(r == code && strstr(e.msg, message)))
		fprintf(stderr, "line %d: %d \"%s\", wanted %d \"%s\"\n", line,
		    r, r ? e.msg : buf_cstr(&got), code, message);
	buf_free(&got);
}

static void
make_npy(struct buf *b, const char *header, size_t data)
{
	size_t n = strlen(header);
	b->len = 0;
	buf_add(b, "\x93NUMPY\1\0", 8);
	buf_putc(b, (char)(n & 0xff));
	buf_putc(b, (char)(n >> 8));
	buf_puts(b, header);
	for (size_t i = 0; i < data; i++)
		buf_putc(b, (char)i);
}

static void
refuse_npy(const char *header, int code, const char *message, int line)
{
	struct buf b = { 0 };
	make_npy(&b, header, 0);
	refuse_bytes("npy", b.p, b.len, code, message, line);
	buf_free(&b);
}

#define NPY(descr, shape) \
	"{'descr': " descr ", 'fortran_order': False, 'shape': " shape ", }"

static void
test_npy_refused(void)
{
#define REFUSE(h, code, msg) refuse_npy(h, code, msg, __LINE__)
	REFUSE(NPY("'|O'", "(2,)"), SE_EUNSUP, "pickles");
	REFUSE(NPY("[('a', '<i4'), ('b', [('c', '|O')])]", "(2,)"), SE_EUNSUP,
	    "pickles");
	REFUSE(NPY("'<f4'", "(-1,)"), SE_EFORMAT, "0 or more");
	REFUSE(NPY("'<f4'", "(True,)"), SE_EFORMAT, "0 or more");
	REFUSE(NPY("'<f4'", "(2.0,)"), SE_EFORMAT, "','");
	REFUSE(NPY("'<f4'", "(3)"), SE_EFORMAT, "','");
	REFUSE(NPY("'<f4'", "3"), SE_EFORMAT, "'('");
	REFUSE(
	    NPY("'<f4'", "(4611686018427387905, 4)"), SE_EFORMAT, "overflow");
	REFUSE(NPY("'<f4'", "(4611686018427387905,)"), SE_EFORMAT, "overflow");
	REFUSE(NPY("'<f4'", "(99999999999999999999,)"), SE_EFORMAT, "2^63");
	REFUSE(NPY("'<f4'", "(1000,)"), SE_ETRUNC, "needs 4000 bytes");
	REFUSE(NPY("'<f3'", "(2,)"), SE_ETRUNC, "needs 6 bytes");
	REFUSE(NPY("'<i3'", "(2,)"), SE_EUNSUP, "i3");
	REFUSE(NPY("'<x4'", "(2,)"), SE_EUNSUP, "x4");
	REFUSE(NPY("'<S99999'", "(2,)"), SE_ELIMIT, "65536");
	REFUSE(NPY("''", "(2,)"), SE_EFORMAT, "empty");
	REFUSE(NPY("'<f4x'", "(2,)"), SE_EFORMAT, "behind");
	REFUSE("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", SE_EFORMAT,
	    "True or False");
	REFUSE("{'descr': '<f4', 'fortran_order': False}", SE_EFORMAT,
	    "shape is missing");
	REFUSE("{'descr': '<f4', 'descr': '<f4'}", SE_EFORMAT, "twice");
	REFUSE("{'descr': '<f4', 'order': 1}", SE_EFORMAT, "only the keys");
	REFUSE("{'descr': '<f4", SE_EFORMAT, "without an end");
	REFUSE("{'descr': '<f4\\", SE_EFORMAT, "without an end");
	REFUSE(NPY("'<f4'", "()") "x", SE_EFORMAT, "behind the header");
	REFUSE("", SE_EFORMAT, "found the end");
	REFUSE(NPY("[('a',[('a',[('a',[('a',[('a',[('a',[('a',[('a',[('a',"
		   "[('a','<f4')])])])])])])])])])]",
		   "()"),
	    SE_ELIMIT, "nested");
#undef REFUSE
	static const char v9[] = "\x93NUMPY\x09\0\2\0{}";
	refuse_bytes("npy", v9, sizeof v9 - 1, SE_EUNSUP, "9.0", __LINE__);
	static const char big[] = "\x93NUMPY\2\0\xff\xff\xff\xff{}";
	refuse_bytes(
	    "npy", big, sizeof big - 1, SE_ELIMIT, "4294967295", __LINE__);
	struct buf b = { 0 };
	make_npy(&b, NPY("'|u1'", "(3,)"), 4);
	refuse_bytes("npy", b.p, b.len, SE_EFORMAT, "1 bytes follow", __LINE__);
	buf_free(&b);
}

static void
make_st(struct buf *b, const char *header, size_t data)
{
	b->len = 0;
	for (size_t i = 0, n = strlen(header); i < 8; i++, n >>= 8)
		buf_putc(b, (char)(n & 0xff));
	buf_puts(b, header);
	for (size_t i = 0; i < data; i++)
		buf_putc(b, (char)i);
}

static void
refuse_st(
    const char *header, size_t data, int code, const char *message, int line)
{
	struct buf b = { 0 };
	make_st(&b, header, data);
	refuse_bytes("safetensors", b.p, b.len, code, message, line);
	buf_free(&b);
}

#define ST(name, type, shape, from, to)                         \
	"\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape \
	",\"data_offsets\":[" #from "," #to "]}"

static void
test_st_refused(void)
{
#define REFUSE(h, n, code, msg) refuse_st(h, n, code, msg, __LINE__)
	/* Metadata::validate: order, extents, holes, overlap, the very end */
	REFUSE("{" ST("a", "U8", "[4]", 4, 8) "}", 8, SE_EFORMAT,
	    "tensor a: data starts at 4, the data before it ends at 0");
	REFUSE(
	    "{" ST("a", "U8", "[4]", 0, 4) "," ST("b", "U8", "[4]", 3, 7) "}",
	    7, SE_EFORMAT, "tensor b: data starts at 3");
	REFUSE(
	    "{" ST("a", "U8", "[4]", 0, 4) "," ST("b", "U8", "[4]", 5, 9) "}",
	    9, SE_EFORMAT, "tensor b: data starts at 5");
	REFUSE("{" ST("a", "U8", "[4]", 0, 4) "}", 5, SE_EFORMAT,
	    "1 bytes follow");
	REFUSE(
	    "{" ST("a", "U8", "[4]", 0, 4) "}", 3, SE_ETRUNC, "needs 4 bytes");
	REFUSE(
	    "{" ST("a", "U8", "[4]", 0, 4) "," ST("b", "U8", "[4]", 4, 8) "}",
	    7, SE_ETRUNC, "last whole tensor: a");
	REFUSE(
	    "{" ST("a", "U8", "[4]", 4, 0) "}", 4, SE_EFORMAT, "ends before");
	REFUSE("{" ST("a", "F32", "[4]", 0, 8) "}", 8, SE_EFORMAT,
	    "need 16 bytes, the file gives them 8");
	REFUSE("{" ST("a", "U8", "[3]", 0, 4) "}", 4, SE_EFORMAT,
	    "need 3 bytes, the file gives them 4");
	REFUSE("{" ST("a", "F4", "[3]", 0, 2) "}", 2, SE_EFORMAT,
	    "no whole number");
	REFUSE("{" ST("a", "F32", "[4611686018427387905]", 0, 4) "}", 4,
	    SE_EFORMAT, "overflow");
	REFUSE("{" ST("a", "F32", "[4294967296,4294967296]", 0, 0) "}", 0,
	    SE_EFORMAT, "overflow");
	/* the same name twice: in other readers the last one wins */
	REFUSE(
	    "{" ST("a", "U8", "[4]", 0, 4) "," ST("a", "U8", "[4]", 0, 4) "}",
	    4, SE_EFORMAT, "tensor a: appears twice");
	REFUSE("{" ST("z\\u0061", "U8", "[0]", 0, 0) "," ST(
		   "za", "U8", "[0]", 0, 0) "}",
	    0, SE_EFORMAT, "tensor za: appears twice");
	REFUSE("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\"}}", 0, SE_EFORMAT,
	    "key \"dtype\" appears twice");
	REFUSE("{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0, SE_EFORMAT,
	    "data_offsets is missing");
	REFUSE("{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0]}}",
	    0, SE_EFORMAT, "expected two data_offsets");
	REFUSE("{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":"
	       "[0,1,1]}}",
	    1, SE_ELIMIT, "at most 2 numbers");
	REFUSE("{\"a\":{}}", 0, SE_EFORMAT, "tensor a");
	REFUSE("{\"a\":[]}", 0, SE_EFORMAT, "expected an object");
	REFUSE("{" ST("a", "Q8", "[4]", 0, 4) "}", 4, SE_EUNSUP, "type Q8");
	REFUSE("{" ST("a", "U8", "[4.0]", 0, 4) "}", 4, SE_EFORMAT, "4.0");
	REFUSE("{" ST("a", "U8", "[4e0]", 0, 4) "}", 4, SE_EFORMAT, "4e0");
	REFUSE("{" ST("a", "U8", "[-4]", 0, 4) "}", 4, SE_EFORMAT, "-4");
	REFUSE("{" ST("a", "U8", "[4]", 0, 18446744073709551616) "}", 4,
	    SE_EFORMAT, "18446744073709551616");
	REFUSE("{" ST("a", "U8", "[4]", 18446744073709551615, 1) "}", 4,
	    SE_EFORMAT, "ends before");
	REFUSE("{\"__metadata__\":{\"a\":1}}", 0, SE_EFORMAT, "__metadata__ a");
	REFUSE("{\"__metadata__\":{},\"__metadata__\":{}}", 0, SE_EFORMAT,
	    "__metadata__ appears twice");
	REFUSE("[]", 0, SE_EFORMAT, "expected an object");
	REFUSE("{}x", 0, SE_EFORMAT, "nothing more");
	REFUSE("{} ,", 0, SE_EFORMAT, "nothing more");
	REFUSE("{", 0, SE_EFORMAT, "1 bytes");
	struct buf deep = { 0 };
	buf_puts(&deep, "{\"a\":{\"x\":");
	for (int i = 0; i < 100000; i++)
		buf_putc(&deep, '[');
	REFUSE(buf_cstr(&deep), 0, SE_ELIMIT, "nested deeper");
	buf_free(&deep);
#undef REFUSE
	static const char huge[] = "\xff\xff\xff\xff\0\0\0\0{}";
	refuse_bytes("safetensors", huge, sizeof huge - 1, SE_ELIMIT,
	    "4294967295", __LINE__);
	static const char longer[] = "\x10\0\0\0\0\0\0\0{}";
	refuse_bytes("safetensors", longer, sizeof longer - 1, SE_ETRUNC,
	    "need 16 bytes at offset 8", __LINE__);
}

/* ---- GGUF by hand ---- */

static void
gg_head(struct buf *b, uint32_t version, uint64_t tensors, uint64_t keys)
{
	b->len = 0;
	buf_puts(b, "GGUF");
	le(b, version, 4);
	le(b, tensors, 8);
	le(b, keys, 8);
}

static void
gg_str(struct buf *b, const char *s)
{
	le(b, strlen(s), 8);
	buf_puts(b, s);
}

static void
gg_info(struct buf *b, const char *name, uint64_t ne0, uint64_t ne1,
    uint32_t type, uint64_t off)
{
	gg_str(b, name);
	le(b, 2, 4);
	le(b, ne0, 8);
	le(b, ne1, 8);
	le(b, type, 4);
	le(b, off, 8);
}

static void
gg_data(struct buf *b, size_t align, size_t n)
{
	while (b->len % align)
		buf_putc(b, 0);
	for (size_t i = 0; i < n; i++)
		buf_putc(b, (char)i);
}

static void
gg_align(struct buf *b, uint32_t type, uint64_t v)
{
	gg_head(b, 3, 0, 1);
	gg_str(b, "general.alignment");
	le(b, type, 4);
	le(b, v, type == 4 ? 4 : 8);
}

static void
test_gguf_refused(void)
{
	struct buf b = { 0 };
#define REFUSE(code, msg) refuse_bytes("gguf", b.p, b.len, code, msg, __LINE__)
	gg_head(&b, 1, 0, 0);
	REFUSE(SE_EUNSUP, "version 1");
	gg_head(&b, 4, 0, 0);
	REFUSE(SE_EUNSUP, "version 4");
	gg_head(&b, 3u << 24, 0, 0);
	REFUSE(SE_EUNSUP, "big-endian");
	gg_head(&b, 3, UINT64_C(1) << 63, 0);
	REFUSE(SE_ELIMIT, "9223372036854775808 tensors");
	gg_head(&b, 3, 1000000, 0);
	REFUSE(SE_ETRUNC, "1000000 items of 24 bytes");
	gg_head(&b, 3, 0, 1000000);
	REFUSE(SE_ETRUNC, "1000000 items of 14 bytes");
	/* a dimension of 0 must not be divided by: 65 bytes that stopped others
	 */
	gg_head(&b, 3, 1, 0);
	gg_str(&b, "t");
	le(&b, 2, 4);
	le(&b, 1, 8);
	le(&b, 0, 8);
	le(&b, 0, 4);
	le(&b, 0, 8);
	CHECK(b.len == 65);
	gg_data(&b, 32, 0);
	struct buf got = { 0 };
	struct err e = { 0 };
	CHECK(!list_mem(&got, "x", b.p, b.len, NULL, &e));
	CHECK(!strcmp(buf_cstr(&got), "x\tt\tf32\t0,1\t0\t00000000\n"));
	buf_free(&got);
	gg_head(&b, 3, 1, 0);
	gg_info(&b, "t", UINT64_MAX, 2, 0, 0);
	REFUSE(SE_EFORMAT, "tensor t: GGUF header, offset 45: negative");
	gg_head(&b, 3, 1, 0);
	gg_info(&b, "t", UINT64_C(1) << 62, 4, 0, 0);
	REFUSE(SE_EFORMAT, "overflows");
	gg_head(&b, 3, 1, 0);
	gg_info(&b, "t", UINT64_C(1) << 61, 2, 28, 0);
	REFUSE(SE_EFORMAT, "overflows");
	gg_head(&b, 3, 1, 0);
	gg_info(&b, "t", 33, 1, 2, 0);
	REFUSE(SE_EFORMAT, "q4_0 needs a multiple of 32");
	for (uint32_t type = 0; type < 50; type++) {
		/* removed from ggml, or never there */
		bool gone = type == 4 || type == 5 ||
			    (type >= 31 && type <= 33) ||
			    (type >= 36 && type <= 38) || type > 42;
		gg_head(&b, 3, 1, 0);
		gg_info(&b, "t", 256, 1, type, 0);
		if (gone)
			REFUSE(SE_EUNSUP, "tensor of type");
		else
			REFUSE(SE_ETRUNC, "tensor t: needs");
	}
	gg_head(&b, 3, 1, 0);
	gg_info(&b, "t", 4, 1, UINT32_MAX, 0);
	REFUSE(SE_EUNSUP, "type 4294967295");
	gg_head(&b, 3, 1, 0);
	gg_info(&b, "t", 4, 2, 0, 32);
	gg_data(&b, 32, 64);
	REFUSE(SE_EFORMAT, "at 32, expected at 0");
	gg_head(&b, 3, 2, 0);
	gg_info(&b, "t", 4, 2, 0, 0);
	gg_info(&b, "u", 4, 2, 0, 0);
	gg_data(&b, 32, 64);
	REFUSE(SE_EFORMAT, "at 0, expected at 32");
	gg_head(&b, 3, 2, 0);
	gg_info(&b, "t", 4, 2, 0, 0);
	gg_info(&b, "t", 4, 2, 0, 32);
	gg_data(&b, 32, 64);
	REFUSE(SE_EFORMAT, "tensor t: appears twice");
	gg_head(&b, 3, 1, 0);
	gg_info(&b, "t", 1000, 1000, 0, 0);
	gg_data(&b, 32, 64);
	REFUSE(SE_ETRUNC, "needs 4000000 bytes");
	gg_head(&b, 3, 1, 0);
	gg_info(&b, "t", 4, 2, 0, 0);
	gg_data(&b, 32, 33);
	REFUSE(SE_EFORMAT, "1 bytes follow");
	gg_head(&b, 3, 1, 0);
	gg_str(&b, "0123456789012345678901234567890123456789012345678901234567"
		   "890123");
	REFUSE(SE_EFORMAT, "name of 64 bytes");
	gg_head(&b, 3, 1, 0);
	gg_str(&b, "t");
	le(&b, 5, 4);
	gg_data(&b, 32, 64);
	REFUSE(SE_EFORMAT, "5 dimensions");
	gg_align(&b, 4, 0);
	REFUSE(SE_EFORMAT, "no power of two");
	gg_align(&b, 4, 24);
	REFUSE(SE_EFORMAT, "no power of two");
	gg_align(&b, 10, 32);
	REFUSE(SE_EFORMAT, "must be u32");
	gg_head(&b, 3, 0, 1);
	gg_str(&b, "a");
	le(&b, 9, 4);
	le(&b, 9, 4); /* an array of arrays */
	le(&b, 1, 8);
	REFUSE(SE_EUNSUP, "array of type 9");
	gg_head(&b, 3, 0, 1);
	gg_str(&b, "a");
	le(&b, 9, 4);
	le(&b, 10, 4);
	le(&b, UINT64_C(1) << 61, 8);
	REFUSE(SE_ETRUNC, "2305843009213693952 items");
	gg_head(&b, 3, 0, 1);
	gg_str(&b, "a");
	le(&b, 8, 4);
	le(&b, UINT64_MAX, 8);
	REFUSE(SE_ETRUNC, "18446744073709551615 items");
	gg_head(&b, 3, 0, 1);
	gg_str(&b, "a");
	le(&b, 13, 4);
	le(&b, 0, 8);
	REFUSE(SE_EUNSUP, "GGUF key kv:a: GGUF header");
	gg_head(&b, 3, 0, 1);
	gg_str(&b, "");
	gg_data(&b, 32, 32);
	REFUSE(SE_EFORMAT, "name of 0 bytes");
	gg_head(&b, 3, 0, 2);
	for (int i = 0; i < 2; i++) {
		gg_str(&b, "a");
		le(&b, 7, 4);
		le(&b, 1, 1);
	}
	REFUSE(SE_EFORMAT, "kv:a: appears twice");
#undef REFUSE
	buf_free(&b);
}

/* Several arrays back to back, as numpy.save on one open file makes them. */
static void
test_npy_sequence(void)
{
	struct buf b = { 0 }, all = { 0 };
	for (int i = 0; i < 3; i++) {
		make_npy(&b, NPY("'|u1'", "(3,)"), 3);
		buf_str(&all, buf_view(&b));
	}
	struct tensor_hints hints = { .follow = true, .dirfd = -1 };
	struct err e;
	int fd[2], n = 0;
	struct src *pipe_src, *src;
	CHECK(!pipe(fd));
	CHECK(write(fd[1], all.p, all.len) == (ssize_t)all.len);
	close(fd[1]);
	CHECK(!src_open_fd(&pipe_src, fd[0], NULL, 0, &e));
	uint64_t off = 0;
	for (;; n++) {
		char byte;
		size_t got;
		CHECK(!src_read_some(pipe_src, off, &byte, 1, &got, &e));
		if (!got)
			break;
		CHECK(!src_open_slice(&src, pipe_src, off, SRC_UNKNOWN, &e));
		struct tensor_set set;
		uint64_t sum[2] = { 0 };
		CHECK(!tensor_open(&set, src, &hints, &e));
		CHECK(set.n == 1 && set.end == b.len);
		CHECK(!tensor_blocks(
		    &set.t[0], scratch, sizeof scratch, add_crc, sum, &e));
		CHECK(sum[0] == gzip_crc32(0, "\0\1\2", 3));
		off += set.end;
		tensor_close(&set);
		src_close(src);
	}
	CHECK(n == 3);
	src_close(pipe_src);
	buf_free(&b);
	buf_free(&all);
}

/* ---- npz ---- */

static void
check_npz(const char *name, const struct buf *content, bool damage, int code,
    const char *message, int line)
{
	struct zipmake z = { 0 };
	struct buf fine = { 0 };
	make_npy(&fine, NPY("'|u1'", "(3,)"), 3);
	zipmake_add(&z, "fine.npy", fine.p, fine.len, 0);
	zipmake_add(&z, name, content->p, content->len, 0);
	size_t end = z.out.len;
	zipmake_end(&z, 0);
	if (damage)
		z.out.p[end - 1] = (char)(z.out.p[end - 1] ^ 1);
	refuse_bytes("npz", z.out.p, z.out.len, code, message, line);
	zipmake_free(&z);
	buf_free(&fine);
}

static void
test_npz(void)
{
	struct buf b = { 0 };
#define NPZ(name, damage, code, msg) \
	check_npz(name, &b, damage, code, msg, __LINE__)
	make_npy(&b, NPY("'|u1'", "(3,)"), 4);
	NPZ("x.npy", false, SE_EFORMAT, "member x.npy: 1 bytes follow");
	make_npy(&b, NPY("'|u1'", "(3,)"), 2);
	NPZ("x.npy", false, SE_ETRUNC, "tensor x: needs 3 bytes");
	make_npy(&b, NPY("'|O'", "(3,)"), 4);
	NPZ("x.npy", false, SE_EUNSUP, "member x.npy: npy header");
	make_npy(&b, NPY("'|u1'", "(3,)"), 3);
	/* The CRC of stored members counts as well. */
	NPZ("x.npy", true, SE_EFORMAT, "CRC");
	NPZ("fine.npy", false, SE_EFORMAT, "fine.npy");
	/* A member that is no array is bytes, not left out. */
	NPZ("fine", false, SE_EFORMAT, "tensor fine: appears twice");
#undef NPZ
	buf_free(&b);
}

/* What follows an image on a pipe is seen only behind its data. */
static void
test_finish(void)
{
	struct tensor_hints npy = { .format = "npy", .dirfd = -1 },
			    st = { .format = "safetensors", .dirfd = -1 };
	struct buf b = { 0 }, got = { 0 };
	struct err e = { 0 };
	/* More than a source reads ahead when it opens. */
	make_npy(&b, NPY("'|u1'", "(9000,)"), 9001);
	CHECK(list_pipe(&got, "x", b.p, b.len, &npy, &e) == SE_EFORMAT);
	CHECK(strstr(e.msg, "follow the end of the npy data") != NULL);
	make_st(&b, "{" ST("a", "U8", "[9000]", 0, 9000) "}", 9001);
	CHECK(list_pipe(&got, "x", b.p, b.len, &st, &e) == SE_EFORMAT);
	buf_free(&b);
	buf_free(&got);
}

/* ---- an index and what it names ---- */

static void
write_file(const char *dir, const char *name, struct str content)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "wb");
	if (CHECK(f != NULL)) {
		CHECK(fwrite(content.p, 1, content.len, f) == content.len);
		fclose(f);
	}
}

static void
check_index(int dir, const char *json, int code, const char *message, int line)
{
	struct tensor_hints hints = { .dirfd = dir };
	struct buf got = { 0 };
	struct err e = { 0 };
	int r = list_mem(&got, "x", json, strlen(json), &hints, &e);
	const char *text = r ? e.msg : buf_cstr(&got);
	if (!CHECK(r == code && strstr(text, message)))
		fprintf(stderr, "line %d: %d \"%s\", wanted %d \"%s\"\n", line,
		    r, text, code, message);
	buf_free(&got);
}

static void
test_index(void)
{
	char dir[] = "/tmp/straightedge-index.XXXXXX";
	if (!CHECK(mkdtemp(dir) != NULL))
		return;
	struct buf b = { 0 };
	make_st(&b,
	    "{" ST("a", "U8", "[2]", 0, 2) "," ST("b", "U8", "[1]", 2, 3) "}",
	    3);
	write_file(dir, "one", buf_view(&b));
	write_file(dir, "cut", (struct str){ b.p, b.len - 2 });
	buf_putc(&b, 0);
	write_file(dir, "long", buf_view(&b));
	char path[300];
	snprintf(path, sizeof path, "%s/link", dir);
	CHECK(!symlink("one", path));
	snprintf(path, sizeof path, "%s/fifo", dir);
	CHECK(!mkfifo(path, 0600));
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
#define INDEX(map, code, msg) \
	check_index(fd, "{\"weight_map\":{" map "}}", code, msg, __LINE__)
	INDEX("\"a\":\"one\",\"b\":\"one\"", 0, "x\ta\tu8\t2\t2\t36de2269\n");
	INDEX("\"a\":\"one\"", 0, "x\ta\t"); /* b: noted, below */
	INDEX("", 0, "");
	INDEX("\"a\":\"/etc/passwd\"", SE_EFORMAT, "not a plain file name");
	INDEX("\"a\":\"../one\"", SE_EFORMAT, "not a plain file name");
	INDEX("\"a\":\"..\"", SE_EFORMAT, "not a plain file name");
	INDEX("\"a\":\"\"", SE_EFORMAT, "not a plain file name");
	INDEX("\"a\":\"one\\u0000\"", SE_EFORMAT, "not a plain file name");
	INDEX("\"a\":\"none\"", SE_EIO, "file none: cannot open");
	INDEX("\"a\":\"link\"", SE_EIO, "file link: cannot open");
	INDEX("\"a\":\"fifo\"", SE_EINVAL, "file fifo: not a regular file");
	INDEX("\"a\":\"one\",\"c\":\"one\"", SE_EFORMAT,
	    "tensor c: file one: is not in it");
	INDEX("\"a\":\"one\",\"b\":\"cut\"", SE_EFORMAT, "another file");
	INDEX("\"a\":\"cut\",\"b\":\"cut\"", SE_ETRUNC,
	    "file cut: tensor a: needs 2 bytes");
	INDEX("\"a\":\"long\"", SE_EFORMAT, "file long: 1 bytes follow");
	INDEX("\"a\":\"one\",\"a\":\"one\"", SE_EFORMAT, "\"a\" appears twice");
	INDEX("\"a\":1", SE_EFORMAT, "expected a string");
#undef INDEX
	check_index(
	    fd, "{\"weight_map\":{}} x", SE_EFORMAT, "nothing more", __LINE__);
	check_index(-1, "{\"weight_map\":{\"a\":\"one\"}}", SE_EINVAL, "beside",
	    __LINE__);
	/* What does not fit is said. */
	struct tensor_hints hints = { .dirfd = fd };
	static const char text[] = "{\"metadata\":{\"total_size\":9},"
				   "\"weight_map\":{\"a\":\"one\"}}";
	struct tensor_set set;
	struct src *src;
	struct err e;
	CHECK(!src_open_mem(&src, text, sizeof text - 1, &e));
	CHECK(!tensor_open(&set, src, &hints, &e));
	CHECK(str_is(set.note, "b: in a file, not in the index; the index "
			       "says 9 bytes in all, the files have 3"));
	tensor_close(&set);
	src_close(src);
	close(fd);
	static const char *const names[] = { "one", "cut", "long", "link",
		"fifo" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
	buf_free(&b);
}

/* ---- copies of forward sources ---- */

/* Byte i is i * 7; user is the size. */
static int
make_bytes(
    void *user, uint64_t off, void *to, size_t len, size_t *got, struct err *e)
{
	uint64_t size = *(uint64_t *)user;
	unsigned char *p = to;
	*got = 0;
	while (*got < len && off + *got < size) {
		p[*got] = (unsigned char)((off + *got) * 7);
		++*got;
	}
	return 0;
}

static void
test_spool(void)
{
	static const uint64_t lens[] = { 0, 1000, SRC_SPOOL_MEM,
		3 * SRC_SPOOL_MEM };
	uint64_t size = 4 * SRC_SPOOL_MEM;
	struct src *src, *copy;
	struct err e = { 0 };
	CHECK(!src_open_fn(&src, make_bytes, &size, SRC_UNKNOWN, NULL, &e));
	CHECK(!src_is_seekable(src));
	for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
		unsigned char b[2];
		if (!CHECK(!src_spool(&copy, src, 100, lens[i], &e)))
			continue;
		CHECK(src_is_seekable(copy) && src_size(copy) == lens[i]);
		for (uint64_t at = lens[i]; at >= 2; at /= 2) {
			CHECK(!src_read_at(copy, at - 2, b, 2, &e));
			CHECK(b[0] == (unsigned char)((at + 98) * 7) &&
			      b[1] == (unsigned char)((at + 99) * 7));
		}
		CHECK(src_read_at(copy, lens[i], b, 1, &e) == SE_ETRUNC);
		src_close(copy);
	}
	/* Short: an error, whether in memory or in a file. */
	CHECK(src_spool(&copy, src, size - 10, 11, &e) == SE_ETRUNC);
	CHECK(src_spool(&copy, src, 100, size, &e) == SE_ETRUNC);
	CHECK(!src_seekable(src, &e) && src_size(src) == size);
	src_close(src);
}

/* ---- strides ----------------------------------------------------------- */

static int
collect(void *user, const void *p, size_t len, struct err *e)
{
	buf_add(user, p, len);
	return 0;
}

/* The k-th element in C order by the definition, against tensor_blocks. */
static void
check_strides(unsigned ndim, const uint64_t *shape, const int64_t *stride,
    const struct dtype *type, unsigned flags, bool forward)
{
	struct err e = { 0 };
	uint64_t count = 1, last = 0;
	for (unsigned i = 0; i < ndim; i++) {
		count *= shape[i];
		last += (shape[i] - 1) * (uint64_t)stride[i];
	}
	size_t stored = (size_t)(last + 1) * type->size;
	unsigned char *data = malloc(stored);
	for (size_t i = 0; i < stored; i++)
		data[i] = (unsigned char)(i * 2654435761u >> 11);
	struct src *src;
	int fd[2] = { -1, -1 };
	if (forward) {
		CHECK(
		    !pipe(fd) && write(fd[1], data, stored) == (ssize_t)stored);
		close(fd[1]);
		CHECK(!src_open_fd(&src, fd[0], NULL, SRC_PLAIN, &e));
	} else {
		CHECK(!src_open_mem(&src, data, stored, &e));
	}
	struct tensor t = { .dtype = type,
		.ndim = ndim,
		.shape = shape,
		.stride = stride,
		.src = src,
		.limit = stored,
		.count = count,
		.bytes = count * type->size,
		.flags = flags };
	struct buf got = { 0 };
	CHECK(!tensor_blocks(&t, scratch, sizeof scratch, collect, &got, &e));
	bool same = CHECK(got.len == t.bytes);
	for (uint64_t k = 0; same && k < count; k++) {
		uint64_t rest = k, at = 0;
		for (unsigned i = ndim; i-- > 0; rest /= shape[i])
			at += rest % shape[i] * (uint64_t)stride[i];
		for (size_t b = 0; same && b < type->size; b++) {
			size_t w = b / type->word * type->word;
			size_t from = flags & TENSOR_SWAP
					  ? w + type->word - 1 - (b - w)
					  : b;
			same = (unsigned char)got.p[k * type->size + b] ==
			       data[at * type->size + from];
		}
	}
	CHECK(same);
	buf_free(&got);
	src_close(src);
	free(data);
}

static void
test_strides(void)
{
	static const struct {
		unsigned ndim;
		uint64_t shape[4];
		int64_t stride[4];
	} c[] = {
		{ 2, { 300, 200 }, { 1, 300 } }, /* transposed */
		{ 2, { 3, 7000 }, { 1, 3 } },    /* a few columns */
		{ 2, { 7000, 3 }, { 1, 7000 } },
		{ 3, { 17, 19, 23 }, { 1, 17, 323 } }, /* Fortran */
		{ 3, { 5, 6, 7 }, { 42, 1, 6 } },
		{ 3, { 5, 6, 7 }, { 7, 35, 1 } },
		{ 4, { 3, 4, 5, 6 }, { 1, 90, 3, 15 } },
		{ 1, { 1000 }, { 3 } },       /* every third */
		{ 1, { 9 }, { 40000 } },      /* far apart */
		{ 2, { 100, 50 }, { 0, 1 } }, /* expanded */
		{ 2, { 100, 50 }, { 1, 0 } },
		{ 2, { 40, 30 }, { 100, 2 } },         /* a slice */
		{ 4, { 1, 7, 1, 2 }, { 9, 1, 5, 7 } }, /* ones */
		{ 2, { 50, 20 }, { 20, 1 } },          /* plain after all */
		{ 3, { 4, 4, 4 }, { 1, 1, 1 } },       /* overlapping */
	};
	static const char *const types[] = { "u8", "f16", "f32", "c64",
		"c128" };
	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
			const struct dtype *t = dtype_find(str_c(types[k]));
			check_strides(
			    c[i].ndim, c[i].shape, c[i].stride, t, 0, false);
			check_strides(c[i].ndim, c[i].shape, c[i].stride, t,
			    TENSOR_SWAP, false);
		}
	/* Larger than one panel and than one stage. */
	static const uint64_t wide[] = { 3000, 700 }, deep[] = { 150, 200, 90 };
	static const int64_t wide_step[] = { 1, 3000 },
			     deep_step[] = { 1, 150, 30000 };
	const struct dtype *c128 = dtype_find(STR_LIT("c128"));
	check_strides(2, wide, wide_step, c128, 0, false);
	check_strides(3, deep, deep_step, c128, 0, false);
	const struct dtype *u8 = dtype_find(STR_LIT("u8"));
	check_strides(2, c[0].shape, c[0].stride, u8, 0, true);
}

/* Conjugation and negation, by hand. */
static void
test_signs(void)
{
	static const float in[] = { 1, 2, -3, 0 };
	static const struct {
		unsigned flags;
		float out[4];
	} c[] = { { TENSOR_CONJ, { 1, -2, -3, -0.0f } },
		{ TENSOR_NEG, { -1, -2, 3, -0.0f } },
		{ TENSOR_CONJ | TENSOR_NEG, { -1, 2, 3, 0 } } };
	struct err e;
	struct src *src;
	uint64_t shape[] = { 2 };
	CHECK(!src_open_mem(&src, in, sizeof in, &e));
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct tensor t = { .dtype = dtype_find(STR_LIT("c64")),
			.ndim = 1,
			.shape = shape,
			.src = src,
			.limit = 16,
			.count = 2,
			.bytes = 16,
			.flags = c[i].flags };
		struct buf got = { 0 };
		CHECK(!tensor_blocks(
		    &t, scratch, sizeof scratch, collect, &got, &e));
		CHECK(got.len == 16 && !memcmp(got.p, c[i].out, 16));
		buf_free(&got);
	}
	src_close(src);
	static const int16_t ints[] = { 5, -7, INT16_MIN, 0 };
	static const int16_t minus[] = { -5, 7, INT16_MIN, 0 };
	uint64_t four[] = { 4 };
	CHECK(!src_open_mem(&src, ints, sizeof ints, &e));
	struct tensor t = { .dtype = dtype_find(STR_LIT("i16")),
		.ndim = 1,
		.shape = four,
		.src = src,
		.limit = 8,
		.count = 4,
		.bytes = 8,
		.flags = TENSOR_NEG };
	struct buf got = { 0 };
	CHECK(!tensor_blocks(&t, scratch, sizeof scratch, collect, &got, &e));
	CHECK(got.len == 8 && !memcmp(got.p, minus, 8));
	buf_free(&got);
	src_close(src);
}

/* ---- plain files ------------------------------------------------------- */

static void
check_plain(const char *data, const struct tensor_hints *hints,
    const char *want, int line)
{
	struct buf got = { 0 };
	struct err e = { 0 };
	for (int piped = 0; piped < 2; piped++) {
		got.len = 0;
		int r =
		    piped ? list_pipe(&got, "x", data, strlen(data), hints, &e)
			  : list_mem(&got, "x", data, strlen(data), hints, &e);
		if (!CHECK(!r && !strcmp(buf_cstr(&got), want)))
			fprintf(stderr, "line %d: %s%s", line, r ? e.msg : "",
			    buf_cstr(&got));
	}
	buf_free(&got);
}

static void
test_plain(void)
{
	uint64_t shape[] = { 2, 2 };
	const struct dtype *i16 = dtype_find(STR_LIT("int16"));
	struct tensor_hints none = { .dirfd = -1 },
			    chunk = { .chunk = 4, .dirfd = -1 },
			    typed = { .dtype = i16, .skip = 1, .dirfd = -1 },
			    shaped = { .dtype = i16,
				    .shape = shape,
				    .ndim = 2,
				    .dirfd = -1 };
	/* python3 -c 'import zlib; print("%08x" % zlib.crc32(b"..."))' */
	check_plain("abc", &none, "x\t\tbytes\t3\t3\t352441c2\n", __LINE__);
	check_plain("", &none, "x\t\tbytes\t0\t0\t00000000\n", __LINE__);
	check_plain("abcdefgh", &chunk,
	    "x\t0\tbytes\t4\t4\ted82cd11\n"
	    "x\t1\tbytes\t4\t4\t08337bb5\n",
	    __LINE__);
	check_plain("abcdef", &chunk,
	    "x\t0\tbytes\t4\t4\ted82cd11\n"
	    "x\t1\tbytes\t2\t2\tfd824970\n",
	    __LINE__);
	check_plain("", &chunk, "x\t0\tbytes\t0\t0\t00000000\n", __LINE__);
	check_plain("_abcdef", &typed, "x\t\ti16\t3\t6\t4b8e39ef\n", __LINE__);
	check_plain(
	    "abcdefgh", &shaped, "x\t\ti16\t2,2\t8\taeef2a50\n", __LINE__);
	struct buf got = { 0 };
	struct err e;
	CHECK(list_mem(&got, "x", "abcdefghi", 9, &shaped, &e) == SE_EFORMAT);
	CHECK(list_pipe(&got, "x", "abcdefghi", 9, &shaped, &e) == SE_EFORMAT);
	CHECK(list_mem(&got, "x", "abcdefg", 7, &shaped, &e) == SE_ETRUNC);
	CHECK(list_pipe(&got, "x", "abcdefg", 7, &shaped, &e) == SE_ETRUNC);
	CHECK(list_mem(&got, "x", "_abcde", 6, &typed, &e) == SE_EFORMAT);
	CHECK(list_pipe(&got, "x", "_abcde", 6, &typed, &e) == SE_EFORMAT);
	buf_free(&got);
}

/* ---- tables and text --------------------------------------------------- */

static void
check_table(const char *data, const char *format, const char *step,
    const char *want, int line)
{
	struct tensor_hints hints = {
		.format = format, .step = str_c(step), .dirfd = -1
	};
	check_plain(data, &hints, want, line);
}

/* Rows before the failure come out; then the message. */
static void
refuse_table(const char *data, const char *format, const char *step,
    const char *want, int code, const char *message, int line)
{
	struct tensor_hints hints = {
		.format = format, .step = str_c(step), .dirfd = -1
	};
	struct buf got = { 0 };
	struct err e = { 0 };
	int r = list_mem(&got, "x", data, strlen(data), &hints, &e);
	if (!CHECK(r == code && strstr(e.msg, message) &&
		   !strcmp(buf_cstr(&got), want)))
		fprintf(stderr, "line %d: %d %s\n%s", line, r, e.msg,
		    buf_cstr(&got));
	buf_free(&got);
}

static void
test_tables(void)
{
#define TABLE(data, format, step, want) \
	check_table(data, format, step, want, __LINE__)
	/* The text of a cell is kept: 1.50 is not 1.5. */
	TABLE("step,loss,\"grad, norm\"\n0,1.50,\"2\"\n7, 1e-3,\"a\"\"b\"\n",
	    "csv", "",
	    "x\tgrad, norm\tnum\t0\t2\nx\tloss\tnum\t0\t1.50\n"
	    "x\tgrad, norm\tstr\t7\ta\"b\nx\tloss\tstr\t7\t 1e-3\n");
	/* What Python's json.dumps prints, in no other JSON. */
	TABLE("{\"b\":NaN,\"a\":[-Infinity,Infinity]}\n", "jsonl", "",
	    "x\ta.0\tnum\t0\t-Infinity\nx\ta.1\tnum\t0\tInfinity\n"
	    "x\tb\tnum\t0\tNaN\n");
	/* A line that cannot be used costs itself, not the rest. */
	TABLE("a,b\n1,2\n3\n5,6\n", "csv", "b",
	    "x\ta\tnum\t2\t1\n"
	    "left out: line 3: expected 2 cells, found 1\n"
	    "x\ta\tnum\t6\t5\n");
	TABLE("a,b\n1,2,3\n", "csv", "",
	    "left out: line 2: expected 2 cells, found 3\n");
	TABLE("{\"s\":1,\"a\":2}\n{\"a\":3}\n", "jsonl", "s",
	    "x\ta\tnum\t1\t2\nleft out: line 2: key s: is missing\n");
	TABLE("{\"step\":1,\"a\":2}\n{\"a\":3}\n{\"step\":4,\"a\":5}", "jsonl",
	    "",
	    "x\ta\tnum\t1\t2\nleft out: line 2: key step: is missing\n"
	    "x\ta\tnum\t4\t5\n");
	TABLE("{\"a\":1}\n{\"a\":1,\"a\":2}\n", "jsonl", "",
	    "x\ta\tnum\t0\t1\n"
	    "left out: line 2: JSON byte 10: key \"a\" appears twice\n");
	TABLE("{\"a\":1}\n{\"a\":2\n", "jsonl", "",
	    "x\ta\tnum\t0\t1\nleft out: line 2: JSON byte 6: expected ',' "
	    "or '}', found the end\n");
	TABLE("[1]\n", "jsonl", "",
	    "left out: line 1: JSON byte 1: expected an object, found an "
	    "array\n");
	TABLE("a,b\r\n1,2\r\n3,4", "csv", "b",
	    "x\ta\tnum\t2\t1\n"
	    "x\ta\tnum\t4\t3\n");
	TABLE("a,b\n1,\n", "csv", "", "x\ta\tnum\t0\t1\nx\tb\tstr\t0\t\n");
	TABLE("\xef\xbb\xbfstep,b\n1,2\n", "csv", "step", "x\tb\tnum\t1\t2\n");
	TABLE("a,b\n\"1\n2\",3\n", "csv", "b", "x\ta\tstr\t3\t1\\n2\n");
	TABLE("a,b\n", "csv", "", "");
	TABLE("a\tb\n\"1\t2\n", "tsv", "b", "x\ta\tstr\t2\t\"1\n");
	TABLE("{\"step\":3,\"loss\":1.50,\"o\":{\"p\":[true,null,\"s\"],"
	      "\"q\":{}}}\n\n{\"step\":\"4\",\"loss\":2}",
	    "jsonl", "",
	    "x\tloss\tnum\t3\t1.50\nx\to.p.0\tbool\t3\ttrue\n"
	    "x\to.p.1\tnull\t3\tnull\nx\to.p.2\tstr\t3\ts\n"
	    "x\to.q\tobject\t3\t{}\nx\tloss\tnum\t4\t2\n");
	TABLE("{\"a\":1}\n{\"step\":9}\n", "jsonl", "",
	    "x\ta\tnum\t0\t1\n"
	    "x\tstep\tnum\t1\t9\n");
	/* A step column alone says that it is a table. */
	TABLE("a,b\n1,2\n", NULL, "b", "x\ta\tnum\t2\t1\n");
	TABLE("a\tb\n1\t2\n", NULL, "b", "x\ta\tnum\t2\t1\n");
	TABLE("{\"a\":1,\"b\":2}\n", NULL, "b", "x\ta\tnum\t2\t1\n");
	TABLE("one\n\n th\tree\r\nlast", "lines", "",
	    "x\t1\ttext\t\tone\n"
	    "x\t2\ttext\t\t\nx\t3\ttext\t\t th\\tree\\r\n"
	    "x\t4\ttext\t\tlast\n");
	TABLE("", "lines", "", "");
#undef TABLE
#define REFUSE(data, format, step, want, code, msg) \
	refuse_table(data, format, step, want, code, msg, __LINE__)
	REFUSE("a,b\n1,\"2\n3,4\n", "csv", "", "", SE_ETRUNC,
	    "line 3: quoted field without an end");
	REFUSE("a,b\n1,2\"3\n", "csv", "", "", SE_EFORMAT, "line 2: expected");
	REFUSE("a,b\n1,\"2\"3\n", "csv", "", "", SE_EFORMAT, "line 2");
	REFUSE("a,b,a\n", "csv", "", "", SE_EFORMAT, "column a: appears twice");
	REFUSE("a,b\n", "csv", "c", "", SE_ENOENT, "step column c");
	REFUSE("", "csv", "", "", SE_ETRUNC, "names of columns");
	struct buf b = { 0 };
	buf_puts(&b, "ok\n");
	for (int i = 0; i < 256 << 10; i++)
		buf_putc(&b, 'a');
	REFUSE(buf_cstr(&b), "lines", "", "x\t1\ttext\t\tok\n", SE_ELIMIT,
	    "line 2: more than");
#undef REFUSE
	/* Memory does not grow with the stream. */
	b.len = 0;
	buf_puts(&b, "step,v\n");
	for (int i = 0; i < 100000; i++)
		buf_printf(&b, "%d,%d\n", i, i);
	struct tensor_hints hints = { .format = "csv", .dirfd = -1 };
	struct tensor_set set;
	struct src *src;
	struct err e;
	size_t n = 0, most = 0;
	CHECK(!src_open_mem(&src, b.p, b.len, &e));
	CHECK(!tensor_open(&set, src, &hints, &e) && tensor_is_stream(&set));
	while (tensor_next(&set, &e) > 0) {
		n += set.n;
		size_t held =
		    set.arena.total + set.batch.total + set.cap * sizeof *set.t;
		most = held > most ? held : most;
	}
	CHECK(n == 100000 && most < 256 << 10);
	tensor_close(&set);
	src_close(src);
	buf_free(&b);
}

static void
test_bad_bool(void)
{
	struct buf b = { 0 };
	struct tensor_set set;
	struct src *src;
	struct err e;
	uint64_t sum[2] = { 0 };
	make_npy(&b, NPY("'|b1'", "(3,)"), 3);
	b.p[b.len - 2] = 0; /* 0, 0, 2 */
	CHECK(!src_open_mem(&src, b.p, b.len, &e));
	CHECK(!tensor_open(&set, src, NULL, &e));
	CHECK(!tensor_blocks(
	    &set.t[0], scratch, sizeof scratch, add_crc, sum, &e));
	CHECK(set.t[0].flags & TENSOR_BADBOOL);
	tensor_close(&set);
	src_close(src);
	buf_free(&b);
}

static int
list_files(int argc, char **argv)
{
	struct tensor_hints hints = { .dirfd = -1 };
	struct buf out = { 0 };
	int status = 0, c;
	while ((c = getopt(argc, argv, "t:s:")) != -1)
		if (c == 't')
			hints.format = optarg;
		else
			hints.step = str_c(optarg);
	for (int i = optind; i < argc; i++) {
		struct src *src;
		struct err e = { 0 };
		out.len = 0;
		int r = src_open(&src, argv[i], NULL, 0, &e);
		if (!r) {
			r = list(&out, argv[i], src, &hints, &e);
			src_close(src);
		}
		printf("%s", buf_cstr(&out));
		if (r) {
			printf("%s\terror\t%s\n", argv[i], e.msg);
			status = 1;
		}
	}
	buf_free(&out);
	return status;
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		return list_files(argc, argv);
	sharded = open(DATA "sharded", O_RDONLY | O_DIRECTORY);
	for_each_file(check_sample);
	for_each_file(check_cuts);
	for_each_file(check_flips);
	test_npy_refused();
	test_gguf_refused();
	test_npy_sequence();
	test_st_refused();
	test_npz();
	test_finish();
	test_index();
	test_spool();
	test_strides();
	test_signs();
	test_plain();
	test_tables();
	test_bad_bool();
	return test_done("unit formats");
}
