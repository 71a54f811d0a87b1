/* The scanner, the detector's histograms, windows: cmd/tracegate. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/tracegate/detect.h"
#include "../../cmd/tracegate/hist.h"
#include "../../cmd/tracegate/keys.h"
#include "../../cmd/tracegate/scan.h"
#include "../../cmd/tracegate/window.h"
#include "test.h"

static int64_t
us(const char *text)
{
	int64_t ns = -1;
	bool cut = false;
	return scan_time(str_c(text), 1000, &ns, &cut) ? ns : INT64_MIN;
}

static void
times(void)
{
	/* Two stamps that one double stands for. */
	CHECK(us("1712195495519689.047") == INT64_C(1712195495519689047));
	CHECK(us("1712195495519689.098") == INT64_C(1712195495519689098));
	CHECK(us("0") == 0);
	CHECK(us("1.5") == 1500);
	CHECK(us("1.0005") == 1000); /* cut, not rounded */
	CHECK(us("-2.25") == -2250);
	CHECK(us("1e3") == 1000000);
	CHECK(us("1.2345e3") == 1234500);
	CHECK(us("12E-2") == 120);
	CHECK(us("9223372036854775.807") == INT64_MAX);
	CHECK(us("9223372036854775.808") == INT64_MIN); /* does not fit */
	CHECK(us("99999999999999999999") == INT64_MIN);
	CHECK(us("01") == INT64_MIN);
	CHECK(us("1.") == INT64_MIN);
	CHECK(us("") == INT64_MIN);
	CHECK(us("1e") == INT64_MIN);
	CHECK(us("0x10") == INT64_MIN);
	CHECK(us("1e99999999") == INT64_MIN);
	CHECK(us("0e99999999") == 0);
}

static long
object(const char *text, struct scan_span *s)
{
	static char room[4096];
	size_t n = strlen(text);
	memset(room, 0, sizeof room);
	memcpy(room, text, n);
	return scan_object(s, room, n);
}

static void
objects(void)
{
	struct scan_span s = { 0 };
	s.quote = calloc(8192, sizeof *s.quote);
	CHECK(object("{}", &s) == 2);
	CHECK(object("{\"a\":\"}\"} x", &s) == 9);
	CHECK(object("{\"a\":\"\\\"}\"}", &s) == 11);
	CHECK(object("{\"a\":\"\\\\\"} \"", &s) == 10);
	CHECK(object("{\"a\":{\"b\":{}}}", &s) == 14 && s.nchild == 1);
	CHECK(object("{\"a\":1", &s) == 0);
	CHECK(object("{\"a\":\"\n\"}", &s) == -1);
	CHECK(object("{\"a\":\"\x01\"}", &s) == 9 && s.control);
	/* A backslash as the last byte of a block of 64. */
	char text[200];
	for (int pad = 50; pad < 70; pad++) {
		memset(text, 'x', sizeof text);
		memcpy(text, "{\"", 2);
		memcpy(text + pad, "\\\"}\":1}", 8);
		CHECK(object(text, &s) == pad + 7);
	}
	free(s.quote);
}

static void
valid(void)
{
	CHECK(scan_valid(
	    STR_LIT("{\"a\":[1,2.5e-3,true,null,{}],\"b\":\"\\u00e9\"}")));
	CHECK(!scan_valid(STR_LIT("{\"a\":01}")));
	CHECK(!scan_valid(STR_LIT("{\"a\":NaN}")));
	CHECK(!scan_valid(STR_LIT("{\"a\":\"\\q\"}")));
	CHECK(!scan_valid(STR_LIT("{\"a\":\"\xff\"}")));
	CHECK(!scan_valid(STR_LIT("{\"a\":\"\xed\xa0\x80\"}")));
	CHECK(!scan_valid(STR_LIT("{\"a\":1,}")));
	CHECK(!scan_valid(STR_LIT("[1] ")));
	CHECK(!scan_valid(STR_LIT("")));
}

static void
quantiles(void)
{
	struct hist *h = calloc(1, sizeof *h);
	struct quantiles q;
	struct hist_rest rest;
	for (int i = 1; i <= 1000; i++)
		hist_add(h, i * 1000, 0);
	hist_quantiles(h, &q);
	/* At most 1/16 above the truth, never below. */
	CHECK(q.q50 >= 501000 && q.q50 < 501000 / 16 * 17);
	CHECK(q.q999 >= 1000000 && q.q999 < 1000000 / 16 * 17);
	/* Without its largest, the rest is what it is compared with. */
	memset(h, 0, sizeof *h);
	for (int i = 0; i < 17; i++)
		hist_add(h, 100, 0);
	hist_add(h, 1000000, 0);
	hist_rest_make(h, &rest);
	hist_rest_without(&rest, hist_bucket(1000000), &q);
	CHECK(q.n == 17 && q.q999 < 110);
	hist_rest_without(&rest, hist_bucket(100), &q);
	CHECK(q.q50 < 110 && q.q999 >= 1000000);
	/* All values fall into the bucket that ends at or above them. */
	for (int64_t v = 0; v < 1 << 20; v = v * 9 / 8 + 1)
		CHECK(hist_top(hist_bucket(v)) >= v &&
		      (!hist_bucket(v) || hist_top(hist_bucket(v) - 1) < v));
	free(h);
}

static void
limits(void)
{
	/* Exact tails of the Poisson distribution (tables). */
	CHECK(poisson_limit(1, 0.001) == 5);
	CHECK(poisson_limit(10, 0.001) == 21);
	CHECK(poisson_limit(0.09, 0.001) == 2);
}

static void
windows(void)
{
	struct windows w = { .rules = { .before = 10, .after = 10 } };
	struct opening o = {
		.ts = 100, .dur = 5, .value = 5, .threshold = 1, .why = WHY_SLOW
	};
	CHECK(windows_open(&w, &o) && w.n == 1);
	CHECK(w.w[0].from == 90 && w.w[0].until == 115);
	o.ts = 120;
	windows_open(&w, &o);
	CHECK(w.n == 1 && w.w[0].until == 135 && w.w[0].openings == 2);
	o.ts = 200;
	windows_open(&w, &o);
	CHECK(w.n == 2);
	CHECK(windows_hit(&w, 0, 89) == NULL);
	CHECK(windows_hit(&w, 0, 90) == &w.w[0]);
	CHECK(windows_hit(&w, 135, 150) == &w.w[0]);
	CHECK(windows_hit(&w, 136, 189) == NULL);
	CHECK(windows_hit(&w, 0, 1000) == &w.w[0]);
	windows_free(&w);
}

static void
folds(void)
{
	char to[KEY_NAME_MAX];
	size_t n = key_fold(to, STR_LIT("ProfilerStep#12 of 345"));
	CHECK(n == 18 && !memcmp(to, "ProfilerStep# of #", 18));
}

int
main(void)
{
	times();
	objects();
	valid();
	quantiles();
	limits();
	windows();
	folds();
	return test_done("tracegate_scan");
}
