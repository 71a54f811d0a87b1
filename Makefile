# straightedge: six commands, one library, one line format.
#
#   make              build everything into build/
#   make deps         install what is missing to build and test
#   make demo         a whole incident on shipped data
#   make check        the tests; needs the base dependencies only
#   make asan tsan    the tests under sanitizers
#   make lint bench fuzz cov install uninstall clean

VERSION = 0.1.0

CC ?= cc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d

# The layers of lib/, lowest first. A file includes headers of its own layer
# or a lower one; tests/layers.sh checks it from these lists.
BASE = arena buf cur err esc hash map num str
INPUT = csv dtype gzip src tensor
DOMAIN = fp rec rec_out schema verdict
CLI = cli opt

COMMANDS =

# From here on: rules.

BUILD = build
LAYERS = $(BASE) $(INPUT) $(DOMAIN) $(CLI)
LIBSRC = $(wildcard $(LAYERS:%=lib/%.c))
LIBOBJ = $(LIBSRC:%.c=$(BUILD)/%.o)
cmdsrc = $(wildcard cmd/$(1).c cmd/$(1)/*.c)
cmdobj = $(patsubst %.c,$(BUILD)/%.o,$(call cmdsrc,$(1)))
BINS = $(COMMANDS:%=$(BUILD)/%)
UNITS = $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/*.c))

WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wwrite-strings -Wvla -Wformat=2 -Wno-unused-parameter
ALLCFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L -D_FILE_OFFSET_BITS=64 \
	-DVERSION='"$(VERSION)"' -iquote lib -include lib/banned.h \
	-ffile-prefix-map=$(CURDIR)=. -pthread $(WARN) $(CPPFLAGS) $(CFLAGS)
LIBS = -lz -lcsv -lm -pthread

all: $(BINS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALLCFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libse.a: $(LIBOBJ)
	rm -f $@
	ar rcsD $@ $(LIBOBJ)

define command
$(BUILD)/$(1): $$(call cmdobj,$(1)) $(BUILD)/libse.a
	$$(CC) $$(ALLCFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(LIBS)
endef
$(foreach c,$(COMMANDS),$(eval $(call command,$(c))))

$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/libse.a
	@mkdir -p $(@D)
	$(CC) $(ALLCFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

unit: $(UNITS)
	@for t in $(UNITS); do timeout 120 $$t || exit 1; done

clean:
	rm -rf $(BUILD)

.PHONY: all unit clean
.SECONDARY:

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
