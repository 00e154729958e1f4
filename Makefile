# `make run` and `make test` are all that a fresh machine with cargo needs: what is missing is
# installed through the package manager (tools/setup.sh).

# Also where a shell that is not a login shell does not have it in its PATH.
CARGO ?= $(shell command -v cargo || echo $(HOME)/.cargo/bin/cargo)
HOST ?= 127.0.0.1
PORT ?= 6379

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

# PGO=1: the build of `make release-pgo`, for install and the benchmarks.
MODULE := $(TARGET)/$(if $(PGO),pgo/)release/libdq.$(if $(filter Darwin,$(shell uname)),dylib,so)
BUILD = $(if $(PGO),$(MAKE) --no-print-directory release-pgo,$(CARGO) build --release)

# The server's allocator, which the module installs, does not exist in a test: so they are built
# without the module; those that need a server start one that loads $(MODULE).
# Most of them wait most of the time: so more at once than there are cores.
TEST = DQ_MODULE='$(MODULE)' RUST_TEST_THREADS=$${RUST_TEST_THREADS:-6} \
	tools/test.sh $(CARGO) test --no-default-features --no-fail-fast

# The module that tests/integration/broken.rs breaks: built before, so that it holds up no other test.
BREAKABLE = $(CARGO) build -q --lib --features breakable --target-dir target/breakable

# Servers built by tools/built-servers.sh.
BUILT = $(CURDIR)/target/built

# In a target folder of its own: in the other one each run would have the module built anew.
BENCH = DQ_MODULE='$(MODULE)' DQ_PGO='$(PGO)' DQ_FLOOR='$(TARGET)/floor/release/libfloor.so' DQ_BENCH_OUT='$(TARGET)/bench' CARGO_TARGET_DIR='$(TARGET)/harness' \
	$(CARGO) bench -q --no-default-features --bench bench --

# Commands that do nothing, to compare with.
FLOOR = CARGO_TARGET_DIR='$(TARGET)/floor' $(CARGO) build -q --release --manifest-path benches/floor/Cargo.toml

# For packagers: DESTDIR is put before all paths that are written, and not into those that are told.
PREFIX ?= /usr/local
MODULE_FOLDER ?= $(PREFIX)/lib/redis/modules

# Crates of their own, so that the module needs nothing of them.
TOP = cd tools && CARGO_TARGET_DIR='$(TARGET)/top' $(CARGO)

OPPONENTS := $(TARGET)/opponents

export CARGO

# Maven's output would begin and end with an escape sequence, whoever reads it.
export MAVEN_OPTS := -Djansi.noreset=true $(MAVEN_OPTS)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p; s/^# --- \(.*\)/\n\1:/p' Makefile | awk -F '\t' 'NF < 2 { print; next } { printf "%-24s %s\n", $$1, $$2 }'
	@echo
	@echo "Settings: DQ_SERVER=path/to/redis-server (all that starts one), SERVERS='paths' (test-all), HOST=, PORT= (run, top, board, shop),"
	@echo "PREFIX=/usr/local (install, uninstall), SECONDS= (soak, fuzz)"

# --- Using it

run: ## a server with the module on port 6379, in the foreground, data in ./data; PORT=6380: in ./data-6380
	@tools/port.sh $(PORT)
	@tools/setup.sh cargo cc libclang server
	@$(CARGO) build --release
	@exec tools/run.sh $(PORT) '$(MODULE)'

demo: ## examples/order_timeout.py: 100,000 orders, and a worker and the server die on the way; with a board beside it
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@$(TOP) build --release -p dq-board
	@server=$$(tools/server.sh) && python=$$(tools/python.sh) && \
	DQ_SERVER=$$server DQ_MODULE='$(MODULE)' DQ_BOARD='$(TARGET)/top/release/dq-board' "$$python" examples/order_timeout.py

shop: ## examples/living.py: a shop with workers, something to look at in the board, on the server at HOST and PORT
	@tools/setup.sh cargo python
	@mkdir -p '$(TARGET)/board'
	@python=$$(tools/venv.sh '$(TARGET)/board/shop' tools/dq-board/tests/shop.txt) && \
	PYTHONPATH=clients/python/src PYTHONDONTWRITEBYTECODE=1 "$$python" examples/living.py --url 'redis://$(HOST):$(PORT)'

top: ## dq-top, a monitor in the terminal, for the server at HOST and PORT; ARGS='--help'
	@tools/setup.sh cargo cc
	@$(TOP) build --release -p dq-top
	@exec '$(TARGET)/top/release/dq-top' $(if $(filter -u,$(ARGS)),,-h '$(HOST)' -p '$(PORT)') $(ARGS)

# BOARD: where it listens, a port beside that of `make run`.
BOARD ?= 127.0.0.1:6390

board: ## dq-board, a monitor in the browser, for the server at HOST and PORT; ARGS='--allow-actions', '--help'
	@tools/setup.sh cargo cc
	@$(TOP) build --release -p dq-board
	@exec '$(TARGET)/top/release/dq-board' --listen '$(BOARD)' $(if $(filter -u,$(ARGS)),,-h '$(HOST)' -p '$(PORT)') $(ARGS)

dq-push: ## what calls jobs by HTTP, docs/push.md; prints where it is
	@tools/setup.sh cargo cc
	@$(TOP) build --release -p dq-push
	@echo '$(TARGET)/top/release/dq-push'

dq-import: ## the importer of docs/migrate.md; prints where it is
	@tools/setup.sh cargo cc
	@CARGO_TARGET_DIR='$(TARGET)/import' $(CARGO) build --release --manifest-path tools/dq-import/Cargo.toml
	@echo '$(TARGET)/import/release/dq-import'

dq-audit: ## what judges the history in an AOF, docs/audit.md; prints where it is
	@tools/setup.sh cargo cc
	@$(TOP) build --release -p dq-audit
	@echo '$(TARGET)/top/release/dq-audit'

build: ## the module, target/release/libdq.so
	@tools/setup.sh cargo cc libclang
	@$(CARGO) build --release

# Linux only, as the benchmark is whose traffic it is built for.
release-pgo: ## the module as it is released, target/pgo/release/libdq.so: built for the traffic of a benchmark
	@tools/setup.sh cargo cc libclang server profdata
	@server=$$(tools/server.sh) && DQ_SERVER=$$server tools/pgo.sh '$(TARGET)'
	@echo '$(TARGET)/pgo/release/libdq.so'

# TRIPLES: fewer targets, as x86_64-unknown-linux-musl. PROFILE: that of another build, which is to be repeated.
release: ## files to publish, target/release-files: modules, packages, programs, lists, checksums (docs/release.md)
	@tools/setup.sh cargo cc libclang python packers server profdata
	@server=$$(tools/server.sh) && DQ_SERVER=$$server PROFILE='$(PROFILE)' tools/release/make.sh '$(TARGET)' $(TRIPLES)

# Through sudo, what `make build` has built: root may have no cargo, and should own nothing in target.
install: ## the module, without symbols, into PREFIX/lib/redis/modules; PGO=1: as released; DESTDIR=... for packagers
	@[ -n "$$SUDO_USER" ] && [ -e '$(MODULE)' ] || $(if $(PGO),$(BUILD),$(MAKE) --no-print-directory build)
	@tools/install.sh '$(MODULE)' '$(MODULE_FOLDER)' '$(DESTDIR)'

uninstall: ## takes it away again
	@tools/install.sh -u '$(MODULE)' '$(MODULE_FOLDER)' '$(DESTDIR)'

# --- Tests

test: ## the module's tests; those that need a server run against DQ_SERVER, or the system's
	@tools/setup.sh cargo cc libclang server cli
	@[ -z "$$CI" ] || tools/setup.sh uml || echo "A test that sets the clock will be left out." >&2
	@$(CARGO) build --release
	@$(BREAKABLE)
	@server=$$(tools/server.sh) && echo "Tests against $$("$$server" --version)" && \
	DQ_SERVER=$$server $(TEST)

# TESTS: fewer of them; ONLY: those with such names.
test-all: ## the tests that need a server, against each one found; DQ_SETTINGS='io-threads aof': under these
	@tools/setup.sh cargo cc libclang server cli
	@[ -z "$$CI" ] || tools/setup.sh uml || echo "A test that sets the clock will be left out." >&2
	@$(CARGO) build --release
	@$(BREAKABLE)
	@failed=; \
	for server in $(or $(SERVERS),$$(tools/server.sh all)); do \
		echo "Tests against $$("$$server" --version)"; \
		DQ_SERVER=$$server $(TEST) $(addprefix --test ,$(or $(TESTS),integration live crash cluster docs)) $(if $(ONLY),-- $(ONLY)) || failed="$$failed $$server"; \
	done; \
	[ -z "$$failed" ] || { echo "Failed:$$failed" >&2; exit 1; }

# The newest of both families, as a busy machine has them set.
test-settings: ## the integration tests on Redis 8.6 and Valkey 9.1 with I/O threads and AOF
	@DQ_SETTINGS='io-threads aof' $(MAKE) --no-print-directory test-all TESTS='integration live' \
		SERVERS='$(wildcard $(CURDIR)/target/servers/redis-8.6/redis-server $(CURDIR)/target/servers/valkey-9.1/valkey-server)'

servers: ## Redis 7.0 to 8.6, Valkey 8.0 to 9.1 under target/servers, for test-all
	@tools/setup.sh fetch
	@tools/servers.sh

# Mostly these tests wait, so more of them run at a time than there are processors.
test-clients: ## the examples and libraries of other languages: Python, Node, Go, Java, Rust
	@tools/setup.sh cargo cc libclang server
	@$(CARGO) build --release
	@DQ_CLIENTS='$(TARGET)/clients' tests/clients/prepare.sh
	@server=$$(tools/server.sh) && echo "Tests against $$("$$server" --version)" && \
	DQ_SERVER=$$server DQ_CLIENTS='$(TARGET)/clients' $(TEST) --test clients -- --include-ignored --test-threads=8

# What the tests of the worker libraries are told.
SUITE = DQ_SERVER=$$server DQ_MODULE='$(MODULE)' DQ_SUITE_OUT='$(TARGET)/suite' PYTHONDONTWRITEBYTECODE=1
PLAY = python=$$(DQ_SUITE_OUT='$(TARGET)/suite' LANGUAGES='$(LANGUAGES)' tools/suite.sh) && server=$$(tools/server.sh) && cd clients/suite && \
	$(SUITE) LANGUAGES='$(LANGUAGES)' "$$python" -m pytest -n $(or $(JOBS),6) --timeout 180

test-suite: ## the worker libraries' behaviour, clients/suite; LANGUAGES=python, ARGS='-k heartbeat'
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@$(PLAY) $(ARGS)

test-suite-gate: ## the short scenarios of it
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@$(PLAY) --gate $(ARGS)

test-python: ## the Python library: its own tests, its example, its types
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@python=$$(DQ_SUITE_OUT='$(TARGET)/suite' tools/suite.sh python) && server=$$(tools/server.sh) && cd clients/python && \
	"$$python" tools/stubs.py --check && "$$python" -m ruff check . ../suite && "$$python" -m ruff format --check . ../suite && \
	"$$python" -m mypy && $(SUITE) "$$python" -m pytest tests example

CELERY = python=$$(tools/venv.sh '$(TARGET)/celery' clients/celery/tests/requirements.txt) && server=$$(tools/server.sh) && cd clients/celery && \
	"$$python" -m ruff check . && "$$python" -m ruff format --check . && $(SUITE) "$$python" -m pytest --timeout 300

test-celery: ## the transport for Celery and kombu
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@$(CELERY) -m 'not long' $(ARGS)

test-celery-long: ## what people report of Celery on Redis, shown there and its absence here
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@$(CELERY) -m long $(ARGS)

bench-celery: ## how late Celery tasks with an ETA begin, beside a plain client; ARGS="--pool solo --count 1000"
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@python=$$(tools/venv.sh '$(TARGET)/celery' clients/celery/tests/requirements.txt) && server=$$(tools/server.sh) && cd clients/celery && \
	$(SUITE) "$$python" tests/lateness.py $(ARGS)

# The broker of a framework, by its name.
BROKER = python=$$(tools/venv.sh '$(TARGET)/brokers/$(1)' clients/$(1)/tests/requirements.txt) && server=$$(tools/server.sh) && cd clients/$(1) && \
	"$$python" -m ruff check . && "$$python" -m ruff format --check . && $(SUITE) "$$python" -m pytest --timeout 300

test-brokers: ## the brokers for Dramatiq and taskiq
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@($(call BROKER,dramatiq)) && ($(call BROKER,taskiq))

test-go: ## the Go library: its own tests, its example; go vet and gofmt
	@tools/setup.sh cargo cc libclang server go
	@$(CARGO) build --release
	@server=$$(tools/server.sh) && cd clients/go && unformatted=$$(gofmt -l .) && [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted" >&2; exit 1; } && \
	for module in . dqotel example; do \
		(cd $$module && go vet ./... && $(SUITE) go test -race ./...) || exit; \
	done

test-java: ## the Java library: its own tests, its example
	@tools/setup.sh cargo cc libclang server java
	@$(CARGO) build --release
	@server=$$(tools/server.sh) && cd clients/java && \
	$(SUITE) mvn -q -B -Dstyle.color=never -Ddq.target='$(TARGET)/suite/java' -f all.xml -pl :dq-redis,:dq-example test

# BOOT: fewer versions of it. Each in a folder of its own, as the library is built with its libraries.
test-spring: ## Spring Boot's starter and its example, with the latest of Boot 3 and the one before; BOOT=3.5.7
	@tools/setup.sh cargo cc libclang server java
	@$(CARGO) build --release
	@server=$$(tools/server.sh) && cd clients/java && for boot in $(or $(BOOT),3.5.7 3.4.11); do \
		$(SUITE) mvn -q -B -Dstyle.color=never -Ddq.target="$(TARGET)/suite/spring-$$boot" -Dspring-boot.version=$$boot -f all.xml \
			-pl :dq-spring-boot-starter,:dq-spring-example -am -Dtest='io.github.redisdq.spring.*Test,shop.*Test' \
			-Dsurefire.failIfNoSpecifiedTests=false test || exit; \
	done

# SEED: another one each time draws other expressions; CASES: for each zone.
test-rules: ## cron expressions against croniter and a walk minute by minute; SEED=1, CASES=400
	@tools/setup.sh cargo cc python
	@python=$$(tools/python.sh croniter) && "$$python" -c 'import tzdata' 2>/dev/null || tools/python.sh tzdata >/dev/null
	@python=$$(tools/python.sh croniter) && mkdir -p '$(TARGET)' && \
	"$$python" -B tests/rules/oracle.py --seed $(or $(SEED),1) --cases $(or $(CASES),400) >'$(TARGET)/rules.txt'
	@DQ_RULES='$(TARGET)/rules.txt' $(CARGO) test --no-default-features --test rules -- --nocapture

test-node: ## the Node library: its own tests, its example, its types
	@tools/setup.sh cargo cc libclang server node20
	@$(CARGO) build --release
	@folder=$$(DQ_SUITE_OUT='$(TARGET)/suite' tools/node.sh) && server=$$(tools/server.sh) && cd "$$folder" && \
	npm run --silent check && $(SUITE) npm --silent test

test-blocks: ## the programs in README.md and docs/clients
	@tools/setup.sh cargo cc libclang server python
	@[ -z "$$CI" ] || tools/setup.sh node20
	@$(CARGO) build --release
	@python=$$(DQ_SUITE_OUT='$(TARGET)/suite' tools/suite.sh python java) && server=$$(tools/server.sh) && \
	node=$$(! tools/setup.sh --check node20 || DQ_SUITE_OUT='$(TARGET)/suite' tools/node.sh) && \
	$(SUITE) DQ_NODE=$$node "$$python" -m pytest -q -p no:cacheprovider --rootdir tests/blocks tests/blocks

packages: ## wheels, sdists, npm tarball, Go module, jars, into target/packages; LANGUAGES=python. Nothing is published
	@mkdir -p '$(TARGET)/packages'
	@for language in $(or $(LANGUAGES),celery dramatiq go java node python taskiq); do \
		DQ_SUITE_OUT='$(TARGET)/suite' tools/packages/$$language.sh build '$(TARGET)/packages' || exit; \
	done
	@ls '$(TARGET)/packages'

test-packages: ## each of them in a clean environment
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@python=$$(DQ_SUITE_OUT='$(TARGET)/suite' tools/suite.sh python) && server=$$(tools/server.sh) && \
	$(SUITE) "$$python" -m pytest -q -p no:cacheprovider --rootdir tests/packages tests/packages

test-recipes: ## docs/recipes.md, `make install` and `make run`, against DQ_SERVER, or the system's
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@server=$$(tools/server.sh) && python=$$(tools/python.sh) && failed= && for tests in recipes install; do \
		DQ_SERVER=$$server DQ_MODULE='$(MODULE)' "$$python" -B -m unittest discover -s tests/$$tests || failed=yes; \
	done && [ -z "$$failed" ]

test-release-gate: ## the .deb and .rpm of this machine's build: what they put where, and that a server loads it
	@tools/setup.sh cargo cc libclang server python
	@[ -z "$$CI" ] || tools/setup.sh packers
	@$(CARGO) build --release
	@server=$$(tools/server.sh) && python=$$(tools/python.sh) && DQ_SERVER=$$server DQ_MODULE='$(MODULE)' \
		"$$python" -B -m unittest discover -s tests/release -p test_packages.py

test-release: ## all that `make release` has made, on glibc, musl and an emulated ARM; prints what was tried where
	@tools/setup.sh cargo source python packers profdata emulator
	@tools/release/servers.sh
	@servers=$$(tools/server.sh all) && python=$$(tools/python.sh) && \
	DQ_RELEASE='$(TARGET)/release-files' DQ_BUILT='$(BUILT)' DQ_SERVERS=$$servers DQ_SERVER=$$(tools/server.sh) \
		"$$python" -B -m unittest discover -s tests/release -p test_release.py

# WHAT=programs: with the targets for musl.
test-reproducible: ## two builds in two folders: the same bytes; TRIPLES=aarch64-unknown-linux-gnu, WHAT=module
	@tools/setup.sh cargo cc libclang python packers server profdata
	@server=$$(tools/server.sh) && export DQ_SERVER=$$server && for triple in $(or $(TRIPLES),x86_64-unknown-linux-gnu); do \
		tools/release/reproduce.sh '$(TARGET)' $(or $(WHAT),module) $$triple || exit; \
	done

test-import: ## dq-import, on what BullMQ, Redisson and beanstalkd themselves made
	@tools/setup.sh cargo cc libclang server
	@[ -z "$$CI" ] || tools/setup.sh java node beanstalkd
	@$(CARGO) build --release
	@tools/dq-import/tests/real/prepare.sh '$(TARGET)/import/real'
	@server=$$(tools/server.sh) && DQ_SERVER=$$server DQ_MODULE='$(MODULE)' \
	DQ_IMPORT_REAL='$(TARGET)/import/real' CARGO_TARGET_DIR='$(TARGET)/import' \
	$(CARGO) test --manifest-path tools/dq-import/Cargo.toml

test-metrics: ## alerts and dashboard, with a real redis_exporter and Prometheus
	@tools/setup.sh cargo cc libclang server python
	@[ -z "$$CI" ] || tools/setup.sh prometheus
	@$(CARGO) build --release
	@server=$$(tools/server.sh) && python=$$(tools/python.sh grafana_foundation_sdk) && \
	DQ_SERVER=$$server DQ_MODULE='$(MODULE)' "$$python" tools/metrics/test.py

test-top: ## dq-top, in a terminal of its own against real servers
	@tools/setup.sh cargo cc libclang server
	@$(CARGO) build --release
	@DQ_SERVER=$$(tools/server.sh) && export DQ_SERVER DQ_MODULE='$(MODULE)' && \
	$(TOP) test --release -p dq-top -p dq-watch

test-audit: ## dq-audit: it notices what is planted, and finds nothing in what servers write that are killed
	@tools/setup.sh cargo cc libclang server
	@$(CARGO) build --release
	@$(TOP) build --release -p dq-audit
	@$(TOP) test --release -p dq-audit
	@server=$$(tools/server.sh) && echo "Tests against $$("$$server" --version)" && \
	DQ_SERVER=$$server DQ_AUDIT='$(TARGET)/top/release/dq-audit' $(TEST) --test integration --test crash -- audit:: killed_

# Traces are those of servers that this has killed.
test-model: ## docs/model, by the model checker TLC, and whether it follows what servers did
	@tools/setup.sh cargo cc libclang server java python
	@$(CARGO) build --release
	@$(TOP) build --release -p dq-audit
	@rm -rf '$(TARGET)/model/traces' && mkdir -p '$(TARGET)/model/traces'
	@server=$$(tools/server.sh) && DQ_SERVER=$$server DQ_AUDIT='$(TARGET)/top/release/dq-audit' DQ_TRACES='$(TARGET)/model/traces' \
		$(TEST) --test crash -- killed_with_appendfsync
	@python=$$(tools/venv.sh '$(TARGET)/model/python' docs/model/requirements.txt) && \
	tools/model.sh "$$python" '$(TARGET)/model/checked' '$(TARGET)/model/traces'

# PICTURES: a folder for those of docs/board.md. ONLY: such tests, as test_actions.Copying.
test-board: ## dq-board, in a real browser against real servers; PICTURES=docs/board makes its pictures
	@tools/setup.sh cargo cc libclang server python browser
	@$(CARGO) build --release
	@$(TOP) build --release -p dq-board
	@$(TOP) test --release -p dq-board
	@mkdir -p '$(TARGET)/board'
	@server=$$(tools/server.sh) && browser=$$(tools/browser.sh) && python=$$(tools/venv.sh '$(TARGET)/board/python' tools/dq-board/tests/requirements.txt) && \
	export DQ_SERVER=$$server DQ_BROWSER=$$browser DQ_MODULE='$(MODULE)' DQ_BOARD='$(TARGET)/top/release/dq-board' \
		DQ_BOARD_PICTURES='$(if $(PICTURES),$(abspath $(PICTURES)))' PYTHONDONTWRITEBYTECODE=1 && \
	cd tools/dq-board/tests && "$$python" -m unittest -v $(ONLY)

# ONLY: such tests, as test_push.Answers.
test-push: ## dq-push, against real servers and receivers, all of which are killed; DQ_PUSH_SEED=1
	@tools/setup.sh cargo cc libclang server python
	@$(CARGO) build --release
	@$(TOP) build --release -p dq-push
	@$(TOP) test --release -p dq-push
	@mkdir -p '$(TARGET)/push'
	@server=$$(tools/server.sh) && python=$$(tools/venv.sh '$(TARGET)/push/python' tools/dq-push/tests/requirements.txt) && \
	export DQ_SERVER=$$server DQ_MODULE='$(MODULE)' DQ_PUSH='$(TARGET)/top/release/dq-push' PYTHONDONTWRITEBYTECODE=1 && \
	cd tools/dq-push/tests && "$$python" -m unittest -v $(or $(ONLY),test_push test_hostile test_crash)

lint: ## formatting and clippy; a warning is an error
	@tools/setup.sh cargo cc libclang lint
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	$(CARGO) clippy --all-targets --no-default-features -- -D warnings
	$(TOP) fmt --all --check
	$(TOP) clippy --workspace --all-targets -- -D warnings
	$(CARGO) fmt --check --manifest-path tools/dq-import/Cargo.toml
	CARGO_TARGET_DIR='$(TARGET)/import' $(CARGO) clippy --manifest-path tools/dq-import/Cargo.toml --all-targets -- -D warnings
	$(CARGO) fmt --check --manifest-path benches/floor/Cargo.toml
	CARGO_TARGET_DIR='$(TARGET)/floor' $(CARGO) clippy --manifest-path benches/floor/Cargo.toml -- -D warnings

# Seconds; with tools of PyPI, and no other machine asked for a link.
lint-docs: ## spelling of all texts; form and links of the documents; Dockerfiles
	@tools/setup.sh python
	@mkdir -p '$(TARGET)'
	@python=$$(tools/venv.sh '$(TARGET)/lint-docs' tools/lint/requirements.txt) && tools/lint/docs.sh "$$python"

# Seconds, once cargo-deny is built.
deny: ## all crates in use: licences, versions, sources, and advisories where their database can be reached
	@tools/setup.sh cargo cc
	@mkdir -p '$(TARGET)'
	@tools/deny.sh '$(TARGET)'

msrv: ## the oldest compiler that Cargo.toml names builds all of it
	@tools/setup.sh cargo cc libclang
	@tools/msrv.sh '$(TARGET)'

# --- Tests that take long, or servers built for them

soak: ## crashes, the simulation and forged payloads with new seeds, for SECONDS=600
	@tools/setup.sh cargo cc libclang server
	@$(CARGO) build --release
	@server=$$(tools/server.sh) && DQ_SERVER=$$server DQ_MODULE='$(MODULE)' \
	tools/soak.sh $(or $(SECONDS),600) $(CARGO) test --no-default-features

fuzz: ## fuzzes the queue, for SECONDS=60 each target (with a nightly compiler)
	@tools/setup.sh cargo cc fuzz
	@tools/fuzz.sh $(or $(SECONDS),60)

asan: ## the tests that need a server, on a Redis with AddressSanitizer (built first)
	@tools/setup.sh cargo cc libclang source
	@tools/built-servers.sh asan
	@$(CARGO) build --release
	@ASAN_OPTIONS=allocator_may_return_null=1 DQ_SERVER='$(BUILT)/redis-asan/redis-server' \
		$(TEST) --test integration

valgrind: ## random traffic under valgrind's memcheck; any report of the module fails
	@tools/setup.sh cargo cc libclang server valgrind
	@tools/valgrind-check.sh canary
	@$(CARGO) build --release
	@tools/valgrind.sh "$$(tools/server.sh)" '$(MODULE)' $(CARGO) test -q --no-default-features --test integration ending

defrag: ## active defragmentation, on a Redis with the jemalloc that it needs (built first)
	@tools/setup.sh cargo cc libclang source
	@tools/built-servers.sh defrag
	@$(CARGO) build --release
	@DQ_SERVER='$(BUILT)/redis-defrag/redis-server' $(TEST) --test integration defrag -- --nocapture

mutants: ## changes the queue in a thousand ways, each of which its tests should notice; SHARD=5/14: a part of them
	@tools/setup.sh cargo cc
	@$(CARGO) mutants --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-mutants
	@mkdir -p '$(TARGET)/mutants'
	@DQ_SIM_STEPS=3000 CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_TEST_DEBUG=0 CARGO_INCREMENTAL=1 \
	$(CARGO) mutants --no-default-features -f 'src/queue/**' -f 'src/storage/**' -e src/storage/skiplist/check.rs -e 'src/**/tests.rs' \
		-E 'memory_bytes|check_invariants|fn check' -o '$(TARGET)/mutants' --profile test --timeout 60 -j2 \
		-C=--lib -C=--test=simulation $(if $(SHARD),--shard $(SHARD))

# --- Figures

bench: ## all figures: bench-core, then bench-opponents; ONLY="wake idle": some of bench-core
	@$(MAKE) --no-print-directory bench-core
	$(if $(ONLY),,@$(MAKE) --no-print-directory bench-opponents)

bench-quick: ## less of it, in under two minutes
	@tools/setup.sh cargo cc libclang server
	@$(BUILD)
	@$(FLOOR)
	@server=$$(tools/server.sh) && DQ_SERVER=$$server $(BENCH) --quick $(ONLY)

bench-core: ## our goals, against a sorted set and scripts
	@tools/setup.sh cargo cc libclang server
	@$(BUILD)
	@$(FLOOR)
	@server=$$(tools/server.sh) && DQ_SERVER=$$server $(BENCH) $(ONLY)

bench-scale: ## ten million jobs, a million queues, a million groups, PINGs beside a steady load; QUICK=1
	@tools/setup.sh cargo cc libclang server
	@$(BUILD)
	@$(FLOOR)
	@server=$$(tools/server.sh) && DQ_SERVER=$$server $(BENCH) --large $(if $(QUICK),--quick) $(ONLY)

bench-count: ## instructions and cache misses per command against benches/counts.txt; RECORD=1 writes it, PGO=1: of such a build
	@tools/setup.sh cargo cc libclang server valgrind
	@$(BUILD)
	@$(FLOOR)
	@server=$$(tools/server.sh) && DQ_SERVER=$$server $(BENCH) --count $(if $(RECORD),--record)

bench-opponents: ## dq, Celery, BullMQ, asynq, Redisson, beanstalkd; ONLY="adds celery", QUICK=1
	@tools/setup.sh cargo cc libclang server
	@$(CARGO) build --release
	@tools/opponents.sh '$(OPPONENTS)'
	@server=$$(tools/server.sh) && PYTHONDONTWRITEBYTECODE=1 '$(OPPONENTS)/python/bin/python' benches/opponents/harness/run.py --out '$(OPPONENTS)' \
		--json '$(TARGET)/bench' --module '$(MODULE)' --server "$$server" $(if $(QUICK),--quick) --only $(ONLY)

bench-libraries: ## the worker libraries beside BullMQ, asynq, Redisson, Celery, Dramatiq, RQ, taskiq, greenstalk; QUICK=1, ONLY='Node BullMQ'
	@tools/setup.sh cargo cc libclang server
	@$(CARGO) build --release
	@tools/opponents.sh '$(OPPONENTS)'
	@server=$$(tools/server.sh) && PYTHONDONTWRITEBYTECODE=1 '$(OPPONENTS)/python/bin/python' benches/opponents/harness/run.py --out '$(OPPONENTS)' \
		--json '$(TARGET)/bench' --module '$(MODULE)' --server "$$server" $(if $(QUICK),--quick) --libraries --only $(ONLY)

bench-tenants: ## one tenant with many jobs beside a thousand with one: groups, a queue per tenant, BullMQ; QUICK=1
	@tools/setup.sh cargo cc libclang server
	@$(CARGO) build --release
	@tools/opponents.sh '$(OPPONENTS)'
	@server=$$(tools/server.sh) && PYTHONDONTWRITEBYTECODE=1 '$(OPPONENTS)/python/bin/python' benches/opponents/harness/run.py --out '$(OPPONENTS)' \
		--json '$(TARGET)/bench' --module '$(MODULE)' --server "$$server" $(if $(QUICK),--quick) --tenants --only $(ONLY)

bench-page: ## docs/benchmarks.md and its plots anew from the figures of the last make bench
	@tools/setup.sh python
	@python=$$(tools/python.sh matplotlib) && PYTHONDONTWRITEBYTECODE=1 "$$python" benches/page/page.py '$(TARGET)/bench'

bench-check: ## docs/benchmarks.md says what its figures say; and the checks of what measures
	@tools/setup.sh python
	@PYTHONDONTWRITEBYTECODE=1 python3 benches/page/test_page.py

clean: ## all that was built or fetched; ./data and ./data-* stay
	$(CARGO) clean
	rm -rf target/servers target/built target/tools target/fuzz target/fuzzing target/valgrind

.PHONY: help run demo shop top board dq-push dq-audit dq-import build release-pgo release install uninstall test test-all servers test-clients test-suite test-suite-gate test-python test-celery test-celery-long bench-celery test-brokers test-go test-java test-spring test-node test-rules test-blocks packages test-packages test-recipes test-release-gate test-release test-reproducible test-import test-metrics test-top test-board test-push test-audit test-model lint lint-docs deny msrv soak fuzz asan valgrind defrag mutants bench bench-quick bench-core bench-scale bench-count bench-opponents bench-libraries bench-tenants bench-page bench-check clean
