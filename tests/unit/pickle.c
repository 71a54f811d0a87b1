/* pickle: what every protocol says, and what is refused. */
#include "pickle.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

static char file[1 << 16];

static size_t
read_file(const char *name)
{
	FILE *f = fopen(name, "rb");
	if (!CHECK(f != NULL))
		return 0;
	size_t n = fread(file, 1, sizeof file, f);
	fclose(f);
	return n;
}

/* The value of the test file, as make_torch.py has it. */
// clang-format off
static const struct {
	const char *key, *text;
} values[] = {
	{ "i", "[1,-1,0,255,256,65535,65536,70000,-2147483648,2147483648,"
		"1099511627776,-9223372036854775808,9223372036854775807,-128,"
		"128,-129]" },
	{ "big", "[0x008000000000000000,0x010000000000000000,"
		"0xfeffffffffffffffff,0x1950a86a20f9469cfc6c]" },
	{ "f", "(0.1,-0,1e+300,inf,-inf)" },
	{ "b", "[true,false,none]" },
	{ "u", "[\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80,,a\\u1234 'q']" },
	{ "y", "[00ff,,616161]" },
	{ "s", "{1,2,3}" },
	{ "fs", "{a,x}" },
	{ "ba", "6162e9" },
	{ "c", "builtins.complex(1,2)" },
	{ "t", "()" },
	{ "t1", "(1)" },
	{ "t3", "(1,2,3)" },
	{ "t4", "(1,2,3,4)" },
	{ "self", "collections.OrderedDict" },
};
// clang-format on

/* Protocols 0 and 1 give an OrderedDict its items as a list of pairs. */
static const struct pickle_node *
value_of(const struct pickle *p, const char *key)
{
	const struct pickle_call *c = p->root->call;
	if (c->dict)
		return pickle_get(c->dict, key);
	const struct pickle_node *list = c->args->item[0];
	for (uint32_t i = 0; i < list->n; i++)
		if (str_is(list->item[i]->item[0]->s, key))
			return list->item[i]->item[1];
	return NULL;
}

static void
test_protocols(void)
{
	for (int proto = 0; proto <= 5; proto++) {
		char name[64];
		snprintf(
		    name, sizeof name, "tests/data/torch/values-%d.pkl", proto);
		size_t len = read_file(name);
		struct pickle p;
		struct err e = { 0 };
		CHECK(pickle_load(&p, file, len, &e) == 0);
		CHECK(p.len == len);
		if (!CHECK(pickle_is_call(p.root, "collections OrderedDict")))
			continue;
		for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
			const struct pickle_node *n =
			    value_of(&p, values[i].key);
			struct buf b = { 0 };
			CHECK(n && pickle_text(&b, n));
			if (!CHECK(!strcmp(buf_cstr(&b), values[i].text)))
				fprintf(stderr, "protocol %d: %s is %s\n",
				    proto, values[i].key, buf_cstr(&b));
			buf_free(&b);
		}
		pickle_free(&p);
	}
}

/* Every prefix is cut short, no changed byte hurts. */
static void
test_cut_and_flip(void)
{
	for (int proto = 0; proto <= 5; proto++) {
		char name[64];
		snprintf(
		    name, sizeof name, "tests/data/torch/values-%d.pkl", proto);
		size_t len = read_file(name);
		struct pickle p;
		struct err e;
		for (size_t n = 0; n < len; n++) {
			char *cut = malloc(n ? n : 1);
			memcpy(cut, file, n);
			CHECK(pickle_load(&p, cut, n, &e) == SE_ETRUNC);
			pickle_free(&p);
			free(cut);
		}
		for (size_t i = 0; i < len; i++) {
			char old = file[i];
			for (int v = 0; v < 256; v += 5) {
				file[i] = (char)v;
				int r = pickle_load(&p, file, len, &e);
				CHECK(r == 0 || (r < 0 && e.msg[0]));
				pickle_free(&p);
			}
			file[i] = old;
		}
	}
}

#define BYTES(s) s, sizeof(s) - 1

static const struct {
	const char *p;
	size_t len;
	int code;
	const char *text;
} bad[] = {
	{ BYTES(""), SE_ETRUNC, "byte 0: ends before STOP" },
	{ BYTES("N"), SE_ETRUNC, "byte 1: ends before STOP" },
	{ BYTES("."), SE_EFORMAT, "0 values and 0 marks left" },
	{ BYTES("NN."), SE_EFORMAT, "2 values and 0 marks left" },
	{ BYTES("(N."), SE_EFORMAT, "1 values and 1 marks left" },
	{ BYTES("\x80\6N."), SE_EUNSUP, "protocol 6" },
	{ BYTES("\xff"), SE_EFORMAT, "unknown opcode 0xff" },
	{ BYTES("\0"), SE_EFORMAT, "unknown opcode 0x00" },
	{ BYTES("\x82\1."), SE_EUNSUP, "opcode EXT1" },
	{ BYTES("\x83\1\0."), SE_EUNSUP, "opcode EXT2" },
	{ BYTES("\x84\1\0\0\0."), SE_EUNSUP, "opcode EXT4" },
	{ BYTES("(ios\nsystem\n."), SE_EUNSUP, "opcode INST" },
	{ BYTES("(cos\nsystem\no."), SE_EUNSUP, "opcode OBJ" },
	{ BYTES("\x97."), SE_EUNSUP, "NEXT_BUFFER" },
	{ BYTES("\x98."), SE_EUNSUP, "READONLY_BUFFER" },
	/* The memory corruption of CVE-2026-24747 begins so. */
	{ BYTES("]NNs."), SE_EFORMAT,
	    "expected a dict to put items into, "
	    "found a list" },
	{ BYTES("K\1NNs."), SE_EFORMAT, "found an int" },
	{ BYTES("](NNu."), SE_EFORMAT, "expected a dict" },
	{ BYTES("}(NNNu."), SE_EFORMAT, "3 values as keys and values" },
	{ BYTES("(NNNd."), SE_EFORMAT, "a dict from 3 values" },
	{ BYTES("}Na."), SE_EFORMAT, "expected a list" },
	{ BYTES(")(Ne."), SE_EFORMAT, "expected a list" },
	{ BYTES("](N\x90."), SE_EFORMAT, "expected a set" },
	{ BYTES("NR."), SE_EFORMAT, "needs 2 values on the stack, has 1" },
	{ BYTES("N(\x86."), SE_EFORMAT, "needs 2 values on the stack, has 0" },
	{ BYTES("0."), SE_EFORMAT, "needs 1 values" },
	{ BYTES("2."), SE_EFORMAT, "needs 1 values" },
	{ BYTES("t."), SE_EFORMAT, "no mark" },
	{ BYTES("N1."), SE_EFORMAT, "no mark" },
	{ BYTES("])R."), SE_EFORMAT, "call of a list" },
	{ BYTES("N)\x81."), SE_EFORMAT, "call of None" },
	{ BYTES("cos\nsystem\n]R."), SE_EFORMAT, "call with a list" },
	{ BYTES("ca\nb\n)]\x92."), SE_EFORMAT, "for names, expected a dict" },
	{ BYTES("}}b."), SE_EFORMAT, "state for a dict" },
	{ BYTES("ca\nb\nNb."), SE_EFORMAT, "state for a name" },
	{ BYTES("ca\nb\n)RNbNb."), SE_EFORMAT, "a second state" },
	{ BYTES("NK\1\x93."), SE_EFORMAT,
	    "two strings for a name, found None "
	    "and an int" },
	{ BYTES("h\0."), SE_EFORMAT, "memo has no entry 0" },
	{ BYTES("Nr\xff\xff\xff\xff."), SE_EFORMAT, "memo index 4294967295" },
	{ BYTES("Np-1\n."), SE_EFORMAT, "expected a memo index" },
	{ BYTES("(q\0."), SE_EFORMAT, "needs 1 values" },
	{ BYTES("I1x\n."), SE_EFORMAT, "expected a digit" },
	{ BYTES("I\n."), SE_EFORMAT, "an integer of 0 digits" },
	{ BYTES("F1x\n."), SE_EFORMAT, "expected a float" },
	{ BYTES("Sabc\n."), SE_EFORMAT, "without quotes" },
	{ BYTES("S'a\\q'\n."), SE_EFORMAT, "bad escape" },
	{ BYTES("V\\uD8\n."), SE_EFORMAT, "bad \\u escape" },
	{ BYTES("X\xff\xff\xff\xff."), SE_ETRUNC, "ends inside BINUNICODE" },
	{ BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), SE_ETRUNC,
	    "ends inside BINUNICODE8" },
	{ BYTES("\x8b\xff\xff\xff\xff."), SE_ETRUNC, "ends inside LONG4" },
	{ BYTES("\x95\xff\0\0\0\0\0\0\0N."), SE_ETRUNC, "ends inside FRAME" },
	{ BYTES("cab"), SE_ETRUNC, "ends inside GLOBAL" },
};

static void
test_bad(void)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct pickle p;
		struct err e = { 0 };
		int r = pickle_load(&p, bad[i].p, bad[i].len, &e);
		if (!CHECK(r == bad[i].code && strstr(e.msg, bad[i].text)))
			fprintf(stderr,
			    "case %zu: %d \"%s\", expected \"%s\"\n", i, r,
			    e.msg, bad[i].text);
		pickle_free(&p);
	}
}

static const struct {
	const char *p;
	size_t len;
	const char *text;
} good[] = {
	{ BYTES("N0K\1."), "1" },
	{ BYTES("(NN1K\1."), "1" },
	{ BYTES("(0K\1."), "1" }, /* POP may take a mark */
	{ BYTES("K\1"
		"2\x86."),
	    "(1,1)" },
	{ BYTES("I01\n."), "true" },
	{ BYTES("I1\n."), "1" },
	{ BYTES("L-9223372036854775809L\n."), "0xff7fffffffffffffff" },
	{ BYTES("\x8a\0."), "0" },
	{ BYTES("\x8a\1\xff."), "-1" },
	{ BYTES("\x8a\2\xff\0."), "255" },
	{ BYTES("\x8b\1\0\0\0\x80."), "-128" },
	{ BYTES("S'a\\n\\x41\"'\n."), "a\nA\"" },
	{ BYTES("V\\u00e9\\U0001F600\xe9\n."),
	    "\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9" },
	{ BYTES("G\x40\x09\x21\xfb\x54\x44\x2d\x18."), "3.141592653589793" },
	{ BYTES("c__builtin__\nset\n(]K\2aK\1atR."), "{1,2}" },
	{ BYTES("ccopy_reg\n_reconstructor\n(NtR."),
	    "copy_reg._reconstructor(none)" },
	{ BYTES("\x8f(K\2K\1\x90."), "{1,2}" },
	{ BYTES("(U\1bU\1a\x91."), "{a,b}" },
};

static void
test_good(void)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct pickle p;
		struct err e = { 0 };
		struct buf b = { 0 };
		int r = pickle_load(&p, good[i].p, good[i].len, &e);
		if (!CHECK(!r && pickle_text(&b, p.root) &&
			   !strcmp(buf_cstr(&b), good[i].text)))
			fprintf(stderr, "case %zu: %d %s \"%s\"\n", i, r, e.msg,
			    buf_cstr(&b));
		buf_free(&b);
		pickle_free(&p);
	}
}

/* A million lists in each other: no recursion in the machine. */
static void
test_deep(void)
{
	enum { DEPTH = 1000000 };
	struct buf b = { 0 };
	for (int i = 0; i < DEPTH; i++)
		buf_putc(&b, ']');
	for (int i = 1; i < DEPTH; i++)
		buf_putc(&b, 'a');
	buf_putc(&b, '.');
	struct pickle p;
	struct err e = { 0 };
	struct buf text = { 0 };
	CHECK(pickle_load(&p, b.p, b.len, &e) == 0);
	CHECK(p.nnodes == DEPTH);
	CHECK(!pickle_text(&text, p.root));
	CHECK(text.len == 0);
	pickle_free(&p);
	buf_free(&b);
	buf_free(&text);
}

/* "Billion laughs": each of 40 tuples is twice the one before. */
static void
test_laughs(void)
{
	struct buf b = { 0 };
	buf_puts(&b, ")");
	for (int i = 0; i < 40; i++)
		buf_puts(&b, "2\x86");
	buf_putc(&b, '.');
	struct pickle p;
	struct err e = { 0 };
	struct buf text = { 0 };
	CHECK(pickle_load(&p, b.p, b.len, &e) == 0);
	CHECK(p.nnodes == 41);
	CHECK(!pickle_text(&text, p.root));
	pickle_free(&p);
	buf_free(&b);
	buf_free(&text);
}

/* bytearray(bytearray(...)): reading bytes does not recurse. */
static void
test_deep_bytes(void)
{
	struct buf c = { 0 };
	for (int i = 0; i < 100000; i++)
		buf_puts(&c, "cbuiltins\nbytearray\n");
	buf_add(&c, "C\1x", 3);
	for (int i = 0; i < 100000; i++)
		buf_puts(&c, "\x85R");
	buf_putc(&c, '.');
	struct pickle p;
	struct err e = { 0 };
	struct arena a = { 0 };
	struct str s;
	CHECK(pickle_load(&p, c.p, c.len, &e) == 0);
	CHECK(!pickle_bytes(p.root, &a, &s));
	pickle_free(&p);
	arena_free(&a);
	buf_free(&c);
}

static void
test_persid(void)
{
	static const char p0[] = "Pstorage 1\n.";
	static const char p2[] = "(U\1aK\1tQ.";
	struct pickle p;
	struct err e = { 0 };
	CHECK(pickle_load(&p, p0, sizeof p0 - 1, &e) == 0);
	CHECK(p.npersid == 1 && p.persid[0] == p.root &&
	      str_is(p.root->item[0]->s, "storage 1"));
	pickle_free(&p);
	CHECK(pickle_load(&p, p2, sizeof p2 - 1, &e) == 0);
	CHECK(p.npersid == 1 && p.root->item[0]->n == 2);
	pickle_free(&p);
	/* What comes behind STOP is not ours. */
	CHECK(pickle_load(&p, "N.xyz", 5, &e) == 0 && p.len == 2);
	pickle_free(&p);
}

int
main(void)
{
	test_protocols();
	test_cut_and_flip();
	test_bad();
	test_good();
	test_deep();
	test_laughs();
	test_deep_bytes();
	test_persid();
	return test_done("unit pickle");
}
