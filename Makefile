# straightedge: six commands, one library, one line format.
#
#   make              build everything into build/
#   make deps         install what is missing to build and test
#   make demo         a whole incident on shipped data
#   make check        the tests; needs the base dependencies only
#   make asan tsan    the tests under sanitizers
#   make lint bench fuzz cov completions install uninstall clean
#   make check-NAME   a larger suite (tests/check-NAME.sh), where its parts are
#
# Only `make deps` installs anything or uses the network. V=1 shows the commands
# of the build, not only what they make.

VERSION = 0.1.0

CC ?= cc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
STACKDIR ?= $(PREFIX)/share/straightedge/stacks
RULESDIR ?= $(PREFIX)/share/straightedge/rules
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
PYTHONDIR ?= $(LIBDIR)/python3/dist-packages
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d

# The layers of lib/, lowest first. A file includes headers of its own layer
# or a lower one; tests/layers.sh checks it from these lists.
BASE = arena buf cur ere err esc glob hash hash_wide map num select signflip stats str
# A new format is found by its name, see tests/check-format.sh.
TENSOR = tensor_formats $(patsubst lib/%.c,%,$(wildcard lib/tensor*.c))
TORCH = torch torch_call torch_legacy torch_storage torch_view torch_walk
INPUT = bundle csv digest dtype dynamic elf foreign gzip json line pickle \
	pickle_node sig slice src walk zip $(TENSOR) $(TORCH)
DOMAIN = align align_lanes dump fingerprint fp mask profile rec rec_out reruns \
	schema verdict
API = se_fingerprint se_record se_stream
CLI = cli opt progress

COMMANDS = fpdiff fpdump gpureplay pmucount rcacompose tracegate

# Tests (unit programs and bats files) that run threads, for `make tsan`.
THREADED = abi api fpdump

# Per cent of the lines of lib/ and cmd/ that `make cov` must reach. It only
# rises.
COVERAGE_FLOOR = 70

# From here on: rules.

BUILD = build
LAYERS = $(BASE) $(INPUT) $(DOMAIN) $(API) $(CLI)
LIBSRC = $(wildcard $(LAYERS:%=lib/%.c))
LIBOBJ = $(LIBSRC:%.c=$(BUILD)/%.o)
cmdsrc = $(wildcard cmd/$(1).c cmd/$(1)/*.c)
cmdobj = $(patsubst %.c,$(BUILD)/%.o,$(call cmdsrc,$(1)))
BINS = $(COMMANDS:%=$(BUILD)/%)
UNITS = $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/*.c))
TOOLS = $(patsubst tests/tools/%.c,$(BUILD)/tools/%,$(wildcard tests/tools/*.c))
SIMS = $(patsubst tests/sim/%.c,$(BUILD)/sim/%,$(wildcard tests/sim/*.c))
FUZZERS = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS = $(FUZZERS:%=$(BUILD)/replay/%)
BATS = $(wildcard tests/*.bats)
SAMPLES = $(wildcard tests/samples/*.bats)
# What takes seconds each is in check-slow; what is one thing many times is
# not done under sanitizers.
TAGS = !slow

WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wwrite-strings -Wvla -Wformat=2 -Wno-unused-parameter
# No path of the build machine in the outputs.
PREFIXMAP = -ffile-prefix-map='$(CURDIR)'=.
ALLCFLAGS = -std=c11 -D_XOPEN_SOURCE=700 -D_FILE_OFFSET_BITS=64 \
	-DVERSION='"$(VERSION)"' -iquote lib -include lib/banned.h \
	$(PREFIXMAP) -fPIC -pthread $(WARN) $(CPPFLAGS) $(CFLAGS)
LIBS = -lz -lcsv -lm -pthread

# The public library: only what straightedge.map names is visible, in the
# static archive as well. The soname rises when a symbol is removed or changed.
SONAME = libstraightedge.so.0
APIOBJ = $(filter-out $(CLI:%=$(BUILD)/lib/%.o),$(LIBOBJ))
LIBRARIES = $(BUILD)/libstraightedge.so $(BUILD)/libstraightedge.a \
	$(BUILD)/straightedge.pc

all: $(BINS) $(LIBRARIES)

# Before a command: what it makes, instead of all its words.
V =
say = $(if $(V),,@echo '  $(1) $@';)

# banned.h includes headers before a file's own first line: a file that asks for
# more than POSIX gets it from here.
gnu = $(if $(shell grep '^.define _GNU_SOURCE' $<),-D_GNU_SOURCE=)

# The runtime that pmucount preloads. It runs where arguments and results lie
# in vector registers, so it has none of its own.
RTFLAGS = -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden \
	-mgeneral-regs-only -fno-stack-protector -fno-sanitize=all \
	$(PREFIXMAP) $(WARN)
RTOBJ = $(patsubst %.c,$(BUILD)/%.o,$(wildcard cmd/pmucount/rt/*.c)) \
	$(BUILD)/cmd/pmucount/rt/stub.o
$(BUILD)/cmd/pmucount/rt/%.o: cmd/pmucount/rt/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(RTFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/cmd/pmucount/rt/stub.o: $(wildcard cmd/pmucount/rt/stub_*.S)
	@mkdir -p $(@D)
	$(call say,AS)$(CC) -c -o $@ cmd/pmucount/rt/stub_$(firstword $(subst -, ,$(shell \
	    $(CC) -dumpmachine))).S
$(BUILD)/libpmucount.so: $(RTOBJ)
	$(call say,LD)$(CC) -shared -Wl,-z,now -o $@ $^ -ldl -pthread
all: $(BUILD)/libpmucount.so

define archive
	@rm -f $@
	$(call say,AR)ar rcsD $@ $^
endef

# `make -j deps check`: nothing is compiled before deps is done.
$(BUILD)/%.o: %.c | $(filter deps,$(MAKECMDGOALS))
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALLCFLAGS) $(gnu) -MMD -MP -c -o $@ $<

$(BUILD)/libse.a: $(LIBOBJ)
	$(archive)

$(BUILD)/libstraightedge.so: $(APIOBJ) lib/straightedge.map
	$(call say,LD)$(CC) $(ALLCFLAGS) $(LDFLAGS) -shared \
		-Wl,-soname,$(SONAME) -Wl,--version-script=lib/straightedge.map -Wl,-z,defs \
		-o $@ $(APIOBJ) $(LIBS)
	@ln -sf libstraightedge.so $(BUILD)/$(SONAME)

$(BUILD)/libstraightedge.a: $(APIOBJ)
	@$(LD) -r -o $(BUILD)/libstraightedge.o $(APIOBJ)
	@objcopy -w --keep-global-symbol='se_*' $(BUILD)/libstraightedge.o
	@rm -f $@
	$(call say,AR)ar rcsD $@ $(BUILD)/libstraightedge.o

# Made anew each time: PREFIX may differ between make and make install.
$(BUILD)/straightedge.pc: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' \
		'includedir=$(INCLUDEDIR)' '' 'Name: straightedge' \
		'Description: fingerprints, boundary streams, records' \
		'Version: $(VERSION)' 'Requires.private: zlib' \
		'Libs: -L$${libdir} -lstraightedge' \
		'Libs.private: -lcsv -lm -pthread' \
		'Cflags: -I$${includedir}' >$@

define command
$(BUILD)/$(1): $$(call cmdobj,$(1)) $(BUILD)/libse.a
	$$(call say,LD)$$(CC) $$(ALLCFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(LIBS)
endef
$(foreach c,$(COMMANDS),$(eval $(call command,$(c))))

define link
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ALLCFLAGS) $(LDFLAGS) -o $@ \
		$(filter %.o %.a,$^) $(LIBS)
endef
$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/libse.a
	$(link)
$(BUILD)/tools/%: $(BUILD)/tests/tools/%.o $(BUILD)/libse.a
	$(link)
$(BUILD)/sim/%: $(BUILD)/tests/sim/%.o $(BUILD)/libse.a
	$(link)
$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libse.a
	$(link)
# A fuzz target with a main that feeds it the corpus, cut and damaged.
$(BUILD)/replay/%: $(BUILD)/tests/fuzz/fuzz_%.o \
		$(BUILD)/tests/fuzz/replay.o $(BUILD)/libse.a
	$(link)
# The same with libFuzzer: BUILD=build/fuzz, see `fuzz`.
$(BUILD)/fuzzer/%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/libse.a
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ALLCFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

# Tests of a command's own modules carry its name: tests/unit/COMMAND_*.c and
# tests/fuzz/fuzz_COMMAND_*.c are linked with all of it but main.c.
define command_tests
$(BUILD)/cmd/$(1).a: $$(filter-out %/main.o,$$(call cmdobj,$(1)))
	$$(archive)
$(BUILD)/unit/$(1)_%: $(BUILD)/tests/unit/$(1)_%.o \
		$(BUILD)/cmd/$(1).a $(BUILD)/libse.a
	$$(link)
$(BUILD)/replay/$(1)_%: $(BUILD)/tests/fuzz/fuzz_$(1)_%.o \
		$(BUILD)/tests/fuzz/replay.o $(BUILD)/cmd/$(1).a \
		$(BUILD)/libse.a
	$$(link)
$(BUILD)/fuzzer/$(1)_%: $(BUILD)/tests/fuzz/fuzz_$(1)_%.o \
		$(BUILD)/cmd/$(1).a $(BUILD)/libse.a
	@mkdir -p $$(@D)
	$$(call say,LD)$$(CC) $$(ALLCFLAGS) -fsanitize=fuzzer -o $$@ $$^ $$(LIBS)
endef
$(foreach c,$(COMMANDS),$(eval $(call command_tests,$(c))))

# ---- tests

TESTPROGRAMS = $(UNITS) $(REPLAYS)

unit: $(TESTPROGRAMS)
	BUILD=$(BUILD) tests/tools/check $(TESTPROGRAMS)

check: all $(TESTPROGRAMS) $(TOOLS)
	@tests/tools/deps --list base optional
	BUILD=$(BUILD) TAGS='$(TAGS)' tests/tools/check $(BATS) $(TESTPROGRAMS)

SANITIZE = -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
asan:
	FILE_SECONDS=1200 $(MAKE) BUILD=build/asan check TAGS='!many' \
		BATS="$(BATS) $(SAMPLES)" \
		CFLAGS='$(SANITIZE) -fsanitize=address,undefined'

tsan:
	TSAN_OPTIONS=halt_on_error=1 $(MAKE) BUILD=build/tsan threaded \
		CFLAGS='$(SANITIZE) -fsanitize=thread'
THREADEDPROGRAMS = $(filter $(THREADED:%=$(BUILD)/unit/%),$(UNITS))
threaded: all $(THREADEDPROGRAMS)
	BUILD=$(BUILD) tests/tools/check \
		$(filter $(THREADED:%=tests/%.bats),$(BATS)) $(THREADEDPROGRAMS)

cov:
	find build/cov -name '*.gcda' -delete 2>/dev/null || :
	$(MAKE) BUILD=build/cov CFLAGS='-O0 -g --coverage' PREFIXMAP= check \
		TAGS= BATS="$(BATS) $(SAMPLES)"
	tests/tools/coverage build/cov $(COVERAGE_FLOOR)

FUZZ_SECONDS = 60
fuzz:
	$(MAKE) BUILD=build/fuzz CC=clang fuzzers CFLAGS='-O1 -g \
		-fsanitize=fuzzer-no-link,address,undefined \
		-fno-sanitize-recover=all'
	FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) \
		tests/tools/fuzz build/fuzz $(FUZZERS)
fuzzers: $(FUZZERS:%=$(BUILD)/fuzzer/%)

lint:
	tests/tools/lint
# What lint compiles: everything, every warning an error.
werror: all $(TESTPROGRAMS) $(TOOLS)

# Larger suites. Each says "not run" and why where its parts are missing.
check-samples: $(BUILD)/unit/formats
check-slow: $(TOOLS)
check-%: all
	BUILD=$(BUILD) tests/check-$*.sh

demo: all
	BUILD=$(BUILD) tests/demo/run

BENCHES = $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/*.c))
bench: all $(BENCHES) $(SIMS)
	BUILD=$(BUILD) tests/bench/run

# ---- what else a user types

deps:
	tests/tools/deps base

completions: all
	BUILD=$(BUILD) tests/tools/completions completions $(COMMANDS)

# "SOURCE TARGET" for every file that is installed.
MAN = $(wildcard man/*.[1357])
STACKS = $(wildcard cmd/rcacompose/stacks/*)
RULES = $(wildcard cmd/tracegate/rules/*)
INSTALL = $(foreach c,$(COMMANDS),$(BUILD)/$(c):$(BINDIR)/$(c)) \
	$(BUILD)/libpmucount.so:$(LIBDIR)/straightedge/libpmucount.so \
	$(foreach m,$(MAN),$(m):$(MANDIR)/man$(subst .,,$(suffix $(m)))/$(notdir $(m))) \
	$(foreach c,$(COMMANDS), \
		completions/bash/$(c):$(BASHDIR)/$(c) \
		completions/zsh/_$(c):$(ZSHDIR)/_$(c) \
		completions/fish/$(c).fish:$(FISHDIR)/$(c).fish) \
	$(foreach s,$(STACKS),$(s):$(STACKDIR)/$(notdir $(s))) \
	$(foreach r,$(RULES),$(r):$(RULESDIR)/$(notdir $(r))) \
	lib/straightedge.h:$(INCLUDEDIR)/straightedge.h \
	lib/python/straightedge.py:$(PYTHONDIR)/straightedge.py \
	$(BUILD)/libstraightedge.a:$(LIBDIR)/libstraightedge.a \
	$(BUILD)/libstraightedge.so:$(LIBDIR)/$(SONAME) \
	$(BUILD)/straightedge.pc:$(LIBDIR)/pkgconfig/straightedge.pc

install: all
	@set -e; for f in $(INSTALL); do \
		to="$(DESTDIR)$${f#*:}"; mode=644; \
		case $$f in $(BUILD)/*) mode=755; esac; \
		mkdir -p "$${to%/*}"; \
		echo "install $$to"; \
		install -m $$mode "$${f%%:*}" "$$to"; \
	done
	ln -sf $(SONAME) "$(DESTDIR)$(LIBDIR)/libstraightedge.so"

uninstall:
	@for f in $(INSTALL); do \
		to="$(DESTDIR)$${f#*:}"; \
		echo "remove $$to"; rm -f "$$to"; \
	done
	rm -f "$(DESTDIR)$(LIBDIR)/libstraightedge.so"

clean:
	rm -rf $(BUILD)

print-%:
	@echo '$($*)'

FORCE:

.PHONY: FORCE all unit check asan tsan threaded cov fuzz fuzzers lint werror \
	demo bench deps completions install uninstall clean
.SECONDARY:

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
