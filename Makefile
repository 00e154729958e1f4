# `make run` and `make test` are all that a fresh machine with cargo needs: missing tools are installed with the package
# manager (tools/install/setup.sh).

# Found even if a shell that is no login shell does not have it in its PATH.
CARGO ?= $(shell command -v cargo || echo $(HOME)/.cargo/bin/cargo)
HOST ?= 127.0.0.1
PORT ?= 6379
# Where the system's server can load the module from.
PREFIX ?= $(if $(DESTDIR),/usr/local,$(shell tools/install/install.sh --prefix))
MODULE_FOLDER ?= $(PREFIX)/lib/redis/modules
BOARD ?= 127.0.0.1:6390

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

# PGO=1: the build of `make release-pgo`, for install and the benchmarks.
MODULE := $(TARGET)/$(if $(PGO),pgo/)release/libdq.$(if $(filter Darwin,$(shell uname)),dylib,so)
# A crate that is built as a Rust library, too, as for the tests, is not optimized with its libraries as one (LTO).
PLAIN = $(CARGO) rustc --release --lib --crate-type cdylib
BUILD = $(if $(PGO),$(MAKE) --no-print-directory release-pgo,$(PLAIN))

# The environment of everything that is started here. Python keeps compiled files, but not among the sources. Maven's
# output would begin and end with an escape sequence even in a pipe, and its runs are too short for the JVM's slower
# compiler.
export CARGO
export DQ_MODULE = $(MODULE)
export DQ_SUITE_OUT = $(TARGET)/suite
export DQ_CLIENTS = $(TARGET)/clients
export PYTHONPYCACHEPREFIX = $(TARGET)/pycache
unexport PYTHONDONTWRITEBYTECODE
# Go's cache, too, recognizes a library wherever it is.
export GOFLAGS := -trimpath $(GOFLAGS)
export MAVEN_OPTS := -Djansi.noreset=true -XX:TieredStopAtLevel=1 -XX:+UseSerialGC $(MAVEN_OPTS)

# What must be installed; the module with what it needs besides; and the program of tools/.
need = @tools/install/setup.sh $(1)
module = @tools/install/setup.sh cargo cc libclang $(1) && $(BUILD)
# Under CI clippy checks what is built for tests while it is built, as `cargo clippy` would compile all of it, and its
# libraries, once more. The module is left out: under clippy rustc optimizes less.
export CLIPPY_ARGS = -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
CHECKED = $(if $(CI),RUSTC_WORKSPACE_WRAPPER='$(patsubst %cargo,%clippy-driver,$(CARGO))')
TOOLS = $(CHECKED) CARGO_TARGET_DIR='$(TARGET)/top'
OF_TOOLS = --manifest-path tools/Cargo.toml --release$(if $(CI), --config tools/ci.toml)
PROGRAMS = $(TOOLS) $(CARGO) $(1) $(OF_TOOLS)
# CI builds and tests all crates at once: one by one, each would build its libraries with other features.
PROGRAM = $(TARGET)/top/release/dq
program = @$(call PROGRAMS,build) $(if $(CI),--workspace,-p dq)
own = @[ -n "$$CI" ] || $(call PROGRAMS,test) -p $(1)
AT = $(if $(filter -u,$(ARGS)),,-h '$(HOST)' -p '$(PORT)') $(ARGS)

ON = tools/servers/on-server.sh
LIBRARY = @$(ON) tools/testing/library.sh

help: ## this list
	@sed -n 's/^\([a-z -]*\):.*## /  make \1\t/p; s/^# --- \(.*\)/\n\1:/p' $(MAKEFILE_LIST) | \
	awk -F '\t' -v wide=$(or $(COLUMNS),80) 'NF < 2 { print; next } \
	{ line = sprintf("%-24s", $$1); if (length($$1) > 24) { print line; line = sprintf("%24s", "") } \
	  count = split($$2, words, " "); \
	  for (i = 1; i <= count; i++) { \
	    if (length(line " " words[i]) > wide && line !~ /^ *$$/) { print line; line = sprintf("%24s", "") } line = line " " words[i] } \
	  print line }'
	@echo
	@echo 'Settings: DQ_SERVER=path/to/redis-server (all that starts one),'
	@echo "SERVERS='paths' (test-all), HOST=, PORT= (run, top, board, shop),"
	@echo 'PREFIX=/usr/local (install, uninstall), SECONDS= (soak, fuzz)'

# --- Using it

run: ## a server with the module on port 6379, in the foreground, data in ./data; PORT=6380: in ./data-6380; MODULE=file: a released one
	@tools/install/port.sh $(PORT)
ifeq ($(origin MODULE),command line)
	$(call need,server)
else
	$(call module,server)
endif
	@exec tools/install/run.sh $(PORT) '$(MODULE)'

demo: ## examples/order_timeout.py: 100,000 orders, and a worker and the server die on the way; with a board beside it
	$(call module,server python)
	$(program)
	@python=$$(tools/install/python.sh) && DQ_PROGRAM='$(PROGRAM)' $(ON) "$$python" examples/order_timeout.py

shop: ## examples/living.py: a shop with workers, something to look at in the board, on the server at HOST and PORT
	$(call need,cargo python)
	@mkdir -p '$(TARGET)/board' && python=$$(tools/install/venv.sh '$(TARGET)/board/shop' tools/dq-board/tests/shop.txt) && \
	PYTHONPATH=clients/python/src "$$python" examples/living.py --url 'redis://$(HOST):$(PORT)'

top: ## dq top, a monitor in the terminal, for the server at HOST and PORT; ARGS='--help'
	$(call need,cargo cc)
	$(program)
	@exec '$(PROGRAM)' top $(AT)

board: ## dq board, a monitor in the browser, for the server at HOST and PORT; BOARD: where it listens; ARGS='--allow-actions', '--help'
	$(call need,cargo cc)
	$(program)
	@exec '$(PROGRAM)' board --listen '$(BOARD)' $(AT)

ONE = $(TARGET)/dq
ifeq ($(shell uname),Linux)
# Valkey, and the module, behind the program; without symbols, which make it ten times as large.
packed = @arch=$$(uname -m) && tools/servers/servers.sh packed-$$arch >/dev/null && mkdir -p '$(TARGET)/plain' && \
	strip -o '$(TARGET)/plain/libdq.so' '$(MODULE)' && strip -o '$(TARGET)/plain/dq' '$(PROGRAM)' && \
	tools/release/pack.sh '$(TARGET)/plain/dq' '$(ONE)' valkey-server=target/servers/packed-$$arch/server libdq.so='$(TARGET)/plain/libdq.so'
else
packed = @cp '$(PROGRAM)' '$(ONE)'
endif

dq: ## the program, target/dq: on Linux with Valkey and the module in it, so that `target/dq dev` needs nothing else
	$(call module,python)
	$(program)
	$(packed)
	@echo '$(ONE)'

build: ## the module, target/release/libdq.so
	$(call need,cargo cc libclang)
	@$(PLAIN)

# Linux only, as is the benchmark whose traffic makes the profile.
release-pgo: ## the module as it is released, target/pgo/release/libdq.so: built for the traffic of a benchmark
	$(call need,cargo cc libclang server profdata)
	@$(ON) tools/release/pgo.sh '$(TARGET)'
	@echo '$(TARGET)/pgo/release/libdq.so'

# TRIPLES: fewer targets, such as x86_64-unknown-linux-musl. PROFILE: that of an earlier build, to repeat it.
release: ## files to publish, target/release-files: modules, packages, programs, lists, checksums (docs/release.md)
	$(call need,cargo cc libclang python packers server profdata)
	@PROFILE='$(PROFILE)' $(ON) tools/release/make.sh '$(TARGET)' $(TRIPLES)

# Installs with sudo what `make build` has built: root may have no cargo, and should own nothing in target.
install: ## the module, without symbols, into PREFIX/lib/redis/modules; PGO=1: as released; DESTDIR=... for packagers
	@[ -n "$$SUDO_USER" ] && [ -e '$(MODULE)' ] || $(if $(PGO),$(BUILD),$(MAKE) --no-print-directory build)
	@tools/install/install.sh '$(MODULE)' '$(MODULE_FOLDER)' '$(DESTDIR)'

uninstall: ## takes it away again
	@tools/install/install.sh -u '$(MODULE)' '$(MODULE_FOLDER)' '$(DESTDIR)'

clean: ## all that was built or fetched; ./data and ./data-* stay
	$(CARGO) clean
	rm -rf target/servers target/built target/tools target/fuzz target/fuzzing target/valgrind

include tests/tests.mk benches/bench.mk

.PHONY: $(shell sed -n 's/^\([a-z][a-z -]*\):.*## .*/\1/p' $(MAKEFILE_LIST))
