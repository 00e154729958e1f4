# What tests dq. `need`, `module` and `program` are defined in the Makefile, which includes this file.

# The server's allocator, which the module uses, does not exist in a test: so tests are built without the module, and
# those that need a server start one that loads $(MODULE).
TEST = $(CHECKED) tools/testing/test.sh $(CARGO) test --no-default-features --no-fail-fast
# The module that tests/integration/broken.rs breaks: built before the tests, so that it delays none of them.
BREAKABLE = @$(CHECKED) $(CARGO) build -q --release -p dq-breakable --target-dir target
TESTS_IN_RUST = $(CHECKED) $(CARGO) test --no-default-features --no-run --all-targets
BUILT = $(CURDIR)/target/built

# --- Tests

test: ## the module's tests; those that need a server run against DQ_SERVER, or the system's
	$(call module,server cli)
	$(BREAKABLE)
	@$(ON) $(TEST)

# TESTS: only these; ONLY: tests with such names. One server after the other, and all of them, even if one fails.
test-all: ## the tests that need a server, against each one found; DQ_SETTINGS='io-threads aof': under these
	$(call module,server cli)
	$(BREAKABLE)
	@failed=; for server in $(or $(SERVERS),$$(tools/servers/server.sh all)); do \
		DQ_SERVER=$$server $(ON) $(TEST) $(addprefix --test ,$(or $(TESTS),integration live crash cluster docs)) $(if $(ONLY),-- $(ONLY)) || \
		failed="$$failed $$server"; \
	done; [ -z "$$failed" ] || { echo "Failed:$$failed" >&2; exit 1; }

# `make test` has a part of it. Some minutes for each seed.
test-simulation: ## the queue without a server, on random histories against its model; SEEDS=12 of each kind
	@DQ_SIM_SEEDS=$(or $(SEEDS),12) $(TEST) --test simulation

# The newest Redis and Valkey, with the settings of a busy machine.
test-settings: ## the integration tests on Redis 8.6 and Valkey 9.1 with I/O threads and AOF
	@DQ_SETTINGS='io-threads aof' $(MAKE) --no-print-directory test-all TESTS='integration live' \
		SERVERS='$(wildcard $(CURDIR)/target/servers/redis-8.6/redis-server $(CURDIR)/target/servers/valkey-9.1/valkey-server)'

servers: ## Redis 7.0 to 8.6, Valkey 8.0 to 9.1 under target/servers, for test-all
	$(call need,fetch)
	@tools/servers/servers.sh

test-clients: ## the examples and libraries of other languages: Python, Node, Go, Java, Rust
	$(call module,server)
	@tests/clients/prepare.sh
	@$(ON) $(TEST) --test clients -- --include-ignored --test-threads=8

test-suite test-suite-gate: ## the worker libraries' behaviour, clients/suite, or its short scenarios; LANGUAGES=python, ARGS='-k heartbeat'
	$(call module,server python)
	$(LIBRARY) suite $(if $(filter %-gate,$@),--gate) $(ARGS)

test-python: ## the Python library: its own tests, its example, its types
	$(call module,server python)
	$(LIBRARY) python $(ARGS)

test-node: ## the Node library: its own tests, its example, its types
	$(call module,server node20)
	$(LIBRARY) node

test-go: ## the Go library: its own tests, its example; go vet and gofmt
	$(call module,server go)
	$(LIBRARY) go $(ARGS)

test-rust: ## the Rust library: its own tests, clippy, and its documentation
	$(call module,server cargo cc lint)
	$(LIBRARY) rust $(ARGS)

test-java: ## the Java library: its own tests, its example
	$(call module,server java)
	$(LIBRARY) java

test-spring: ## Spring Boot's starter and its example, with the latest of Boot 4 and 3; BOOT=4.0.9
	$(call module,server java)
	$(LIBRARY) spring $(or $(BOOT),4.1.2 3.5.16)

test-celery test-celery-long: ## the transport for Celery and kombu; what people report of Celery on Redis, and its absence here
	$(call module,server python)
	$(LIBRARY) celery -m '$(if $(filter %-long,$@),long,not long)' $(ARGS)

test-brokers: ## the brokers for Dramatiq and taskiq, the backend for tasks of Django
	$(call module,server python)
	$(LIBRARY) dramatiq $(ARGS)
	$(LIBRARY) taskiq $(ARGS)
	$(LIBRARY) django $(ARGS)

# SEED: another one draws other expressions; CASES: how many for each zone.
test-rules: ## cron expressions against croniter and a walk minute by minute; SEED=1, CASES=400
	$(call need,cargo cc python)
	@python=$$(tools/install/python.sh croniter) && "$$python" -c 'import tzdata' 2>/dev/null || tools/install/python.sh tzdata >/dev/null
	@python=$$(tools/install/python.sh croniter) && mkdir -p '$(TARGET)' && \
	"$$python" tests/rules/oracle.py --seed $(or $(SEED),1) --cases $(or $(CASES),400) >'$(TARGET)/rules.txt'
	@DQ_RULES='$(TARGET)/rules.txt' $(CARGO) test --no-default-features --test rules -- --nocapture

test-blocks: ## the programs in README.md and clients/*/README.md, and those of web frameworks
	$(call module,server python $(if $(CI),node20))
	$(LIBRARY) blocks

packages: ## wheels, sdists, npm tarball, Go module, jars, crate, into target/packages; LANGUAGES=python. Nothing is published
	@mkdir -p '$(TARGET)/packages'
	@for language in $(or $(LANGUAGES),celery dramatiq go java node python rust taskiq); do \
		case $$language in node) need=node20 ;; go | java) need=$$language ;; rust) need="cargo cc" ;; *) need=fetch ;; esac; \
		tools/install/setup.sh $$need && tools/packages/$$language.sh build '$(TARGET)/packages' || exit; \
	done
	@ls '$(TARGET)/packages'

test-packages: ## each of them in a clean environment
	$(call module,server python)
	$(LIBRARY) packages

test-recipes: ## docs/recipes.md, `make install` and `make run`, against DQ_SERVER, or the system's
	$(call module,server python)
	@python=$$(tools/install/python.sh) && failed= && for tests in recipes install; do \
		$(ON) "$$python" -m unittest discover -s tests/$$tests || failed=yes; \
	done && [ -z "$$failed" ]

test-release-gate: ## the .deb, .rpm, wheel and npm tarball of this machine's build: what they put where, and that it works
	$(call module,server python $(if $(CI),packers node20))
	$(program)
	$(packed)
	@python=$$(tools/install/python.sh) && DQ_ONE='$(ONE)' $(ON) "$$python" -m unittest discover -s tests/release -p test_packages.py

test-release: ## all that `make release` has made, on glibc, musl and an emulated ARM; prints what was tried where
	$(call need,cargo source python packers profdata emulator)
	@tools/release/servers.sh
	@servers=$$(tools/servers/server.sh all) && python=$$(tools/install/python.sh) && \
	DQ_RELEASE='$(TARGET)/release-files' DQ_BUILT='$(BUILT)' DQ_SERVERS=$$servers $(ON) "$$python" -m unittest discover -s tests/release -p test_release.py && \
	DQ_ONE=$$(echo '$(TARGET)'/release-files/dq-*-"$$(uname -m)"-linux) $(ON) "$$python" -m unittest discover -s tests/release -p test_packages.py -k Bare -k Registries -k Licenses

# WHAT=program: with the targets for musl.
test-reproducible: ## two builds in two folders: the same bytes; TRIPLES=aarch64-unknown-linux-gnu, WHAT=module
	$(call need,cargo cc libclang python packers server profdata)
	@for triple in $(or $(TRIPLES),x86_64-unknown-linux-gnu); do \
		$(ON) tools/release/reproduce.sh '$(TARGET)' $(or $(WHAT),module) $$triple || exit; \
	done

REAL = @tools/dq-import/tests/real/prepare.sh '$(TARGET)/import/real'
test-import: ## dq import, on what BullMQ, Redisson and beanstalkd themselves made
	$(call module,server $(if $(CI),java node beanstalkd))
	$(REAL)
	@[ "$$(uname)" != Linux ] || tools/servers/servers.sh packed-$$(uname -m)
	@DQ_SERVER=$$(tools/servers/server.sh) DQ_IMPORT_REAL='$(TARGET)/import/real' $(call PROGRAMS,test) -p dq --test import
	$(call own,dq-import)

test-programs: ## what the program dq and its commands test by themselves, on one build
	$(call module,server $(if $(CI),java node beanstalkd))
	$(REAL)
	@[ "$$(uname)" != Linux ] || tools/servers/servers.sh packed-$$(uname -m)
	@DQ_SERVER=$$(tools/servers/server.sh) DQ_IMPORT_REAL='$(TARGET)/import/real' $(TOOLS) \
	tools/testing/test.sh $(CARGO) test $(OF_TOOLS) --workspace --no-fail-fast

test-metrics: ## alerts and dashboard, with a real redis_exporter and Prometheus
	$(call module,server python $(if $(CI),prometheus))
	@python=$$(tools/install/venv.sh '$(TARGET)/metrics' tools/metrics/requirements.txt) && $(ON) "$$python" tools/metrics/test.py

test-top: ## dq top, in a terminal of its own against real servers
	$(call module,server)
	@DQ_SERVER=$$(tools/servers/server.sh) $(call PROGRAMS,test) -p dq --test terminal
	$(call own,dq-top -p dq-watch)

# All tests judge what killed servers write, if DQ_PROGRAM names the program.
test-audit: ## dq audit: it notices what is planted, and finds nothing in what servers write that are killed
	$(call module,server)
	$(program)
	$(call own,dq-audit)
	@DQ_PROGRAM='$(PROGRAM)' $(ON) $(TEST) --test integration --test crash -- audit:: killed_

# TRACES: a folder with traces of killed servers that a test run has left; otherwise it kills servers itself.
test-model test-model-gate: ## docs/model, by the model checker TLC, and whether it follows what servers did; or within narrower bounds
	$(call module,server java python)
	$(program)
	@[ -n '$(TRACES)' ] || { rm -rf '$(TARGET)/model/traces' && mkdir -p '$(TARGET)/model/traces' && \
		DQ_PROGRAM='$(PROGRAM)' DQ_TRACES='$(TARGET)/model/traces' $(ON) $(TEST) --test crash -- killed_with_appendfsync; }
	@python=$$(tools/install/venv.sh '$(TARGET)/model/python' docs/model/requirements.txt) && \
	GATE='$(filter %-gate,$@)' tools/testing/model.sh "$$python" '$(TARGET)/model/checked' '$(or $(TRACES),$(TARGET)/model/traces)'

# PICTURES: a folder for the pictures of docs/board.md, of a board that has run for AGE seconds (3600 looks best).
# ONLY: tests with such names, as test_actions.Copying.
test-board test-board-gate: ## dq board, in a real browser against real servers, or each page in fewer widths; PICTURES=docs/board makes its pictures
	$(call module,server python browser $(if $(CI),prometheus))
	$(program)
	$(call own,dq-board)
	@mkdir -p '$(TARGET)/board' && browser=$$(tools/testing/browser.sh) && python=$$(tools/install/venv.sh '$(TARGET)/board/python' tools/dq-board/tests/requirements.txt) && \
	export DQ_BROWSER=$$browser DQ_PROGRAM='$(PROGRAM)' DQ_BOARD_PICTURES='$(if $(PICTURES),$(abspath $(PICTURES)))' DQ_BOARD_AGE='$(AGE)' DQ_BOARD_GATE='$(filter %-gate,$@)' && \
	$(ON) sh -c "cd tools/dq-board/tests && '$$python' ../../testing/beside.py 4 $(ONLY)"

test-push: ## dq http, against real servers and receivers, all of which are killed; DQ_PUSH_SEED=1, ONLY=test_push.Answers, ADDS=100000
	$(call module,server python $(if $(CI),php ruby))
	$(program)
	$(call own,dq-push)
	@mkdir -p '$(TARGET)/push' && python=$$(tools/install/venv.sh '$(TARGET)/push/python' tools/dq-push/tests/requirements.txt) && \
	DQ_PROGRAM='$(PROGRAM)' DQ_HTTP_ADDS='$(ADDS)' $(ON) sh -c "cd tools/dq-push/tests && '$$python' ../../testing/beside.py 6 $(ONLY)"

# Uses the build of releases, to share its build scripts. Tests and benchmarks are built without the module. Under CI
# everything is checked while it is built anyway: the module as the one that a test breaks, the floor by `make
# bench-count`.
CLIPPY = clippy -q --release
lint: ## formatting and clippy; a warning is an error
	$(call need,cargo cc libclang lint)
	$(CARGO) fmt --check
	$(CARGO) fmt --all --check --manifest-path tools/Cargo.toml
	$(CARGO) fmt --check -p dq-floor -p dq-generate -p dq-tests
	$(CARGO) fmt --check --manifest-path benches/opponents/rust/Cargo.toml
	@tools/testing/deny.sh '$(TARGET)' twice
ifdef CI
	$(BREAKABLE)
	$(TESTS_IN_RUST)
	$(call PROGRAMS,test) --workspace --no-run
else
	$(CARGO) $(CLIPPY) --lib -- -D warnings
	$(CARGO) $(CLIPPY) -p dq-floor -p dq-generate -- -D warnings
	$(CARGO) $(CLIPPY) --all-targets --no-default-features -- -D warnings
	$(TOOLS) $(CARGO) $(CLIPPY) --manifest-path tools/Cargo.toml --workspace --all-targets -- -D warnings
endif

# Takes seconds; uses tools of PyPI, but checks no links to other machines.
lint-docs: ## spelling of all texts; form and links of the documents; Dockerfiles
	$(call need,python)
	@mkdir -p '$(TARGET)'
	@python=$$(tools/install/venv.sh '$(TARGET)/lint-docs' tools/lint/requirements.txt) && tools/lint/docs.sh "$$python"

# Takes seconds, once cargo-deny is built.
deny: ## all crates in use: licences, versions, sources, and advisories where their database can be reached
	$(call need,cargo cc)
	@mkdir -p '$(TARGET)'
	@tools/testing/deny.sh '$(TARGET)'

msrv: ## the oldest compiler that Cargo.toml names builds all of it
	$(call need,cargo cc libclang)
	@tools/testing/msrv.sh '$(TARGET)'

# --- Shared by the parts of .ci/run, and fetched or built once

ready: ## all that the tests need of the system; one that is not there is said by the test that needs it
	@tools/install/setup.sh server cli python node20 go java beanstalkd prometheus valgrind browser packers || true

ready-build: ## the module, the programs, and all tests in Rust
	$(call module)
	$(BREAKABLE)
	@$(TESTS_IN_RUST)
	@$(call PROGRAMS,build) --workspace
	@$(call PROGRAMS,test) --workspace --no-run

ready-libraries: ## the libraries of other languages, and what they are tested with
	@for module in redis pip; do tools/install/python.sh $$module; done
	@tools/testing/suite.sh
	@tests/clients/prepare.sh
	@tests/blocks/web/prepare.sh
	$(REAL)

generated: ## what follows from tables: the libraries' options and records of a job, their lists of errors, rows of documents
	$(call need,cargo)
	@$(CARGO) run -q -p dq-generate

option-cost: ## the files that COMMIT=... has changed by hand, those left out that .gitattributes says are generated
	@git diff --name-only '$(or $(COMMIT),HEAD)^' '$(or $(COMMIT),HEAD)' | git check-attr --stdin linguist-generated | \
	awk -F ': ' '$$3 != "set" { print $$1; count++ } END { print count + 0 " files by hand" }'

golden: ## files of today's version of the format, tests/integration/encodings/1, written by Redis 7.0
	$(call module,server cli)
	@DQ_GOLDEN='$(CURDIR)/tests/integration/encodings/1' $(ON) $(TEST) --test integration -- encodings::files_of_today

# --- Tests that take long, or servers built for them

soak: ## crashes, the simulation and forged payloads with new seeds, for SECONDS=600
	$(call module,server)
	@$(ON) tools/testing/soak.sh $(or $(SECONDS),600) $(CARGO) test --no-default-features

reliability: ## the table of losses in docs/reliability.md (a quarter of an hour), then `make soak` for SECONDS=600
	$(call module,server)
	@$(ON) $(CARGO) test -q --no-default-features --test cluster -- --ignored --exact durability::figures --nocapture
	@$(MAKE) --no-print-directory soak

# SUITES: only these. A test that fails once in 20 runs is fixed or removed.
test-flaky: ## each suite TIMES=20 times beside four busy loops; says which tests failed how often; SUITES='test test-go'
	$(call need,cargo cc libclang server cli)
	@tools/testing/flaky.sh $(or $(TIMES),20) $(or $(SUITES),test test-suite-gate test-python test-node test-go test-rust test-java test-celery \
		test-brokers test-clients test-programs test-board test-push test-recipes)

fuzz: ## fuzzes the queue, for SECONDS=60 each target (with a nightly compiler)
	$(call need,cargo cc fuzz)
	@tools/testing/fuzz.sh $(or $(SECONDS),60)

asan: ## the tests that need a server, on a Redis with AddressSanitizer (built first)
	$(call module,source)
	@tools/servers/built-servers.sh asan
	@ASAN_OPTIONS=allocator_may_return_null=1:verify_asan_link_order=0 DQ_SERVER='$(BUILT)/redis-asan/redis-server' $(TEST) --test integration

valgrind: ## random traffic under valgrind's memcheck; any report of the module fails
	$(call module,server valgrind)
	@tools/testing/valgrind-check.sh canary
	@tools/testing/valgrind.sh "$$(tools/servers/server.sh)" '$(MODULE)' $(CARGO) test -q --no-default-features --test integration ending

defrag: ## active defragmentation, on a Redis with the jemalloc that it needs (built first)
	$(call module,source)
	@tools/servers/built-servers.sh defrag
	@DQ_SERVER='$(BUILT)/redis-defrag/redis-server' $(TEST) --test integration defrag -- --nocapture

mutants: ## changes the queue in a thousand ways, each of which its tests should notice; SHARD=5/14: a part of them
	$(call need,cargo cc)
	@$(CARGO) mutants --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-mutants
	@mkdir -p '$(TARGET)/mutants'
	@DQ_SIM_STEPS=3000 DQ_SIM_DEPTH=4 CARGO_PROFILE_TEST_DEBUG=0 CARGO_INCREMENTAL=1 \
	$(CARGO) mutants --no-default-features -f 'src/queue/**' -f 'src/storage/**' -e src/storage/skiplist/check.rs -e 'src/**/tests.rs' \
		-E 'memory_bytes|check_invariants|fn check' -o '$(TARGET)/mutants' --profile test --minimum-test-timeout 60 --timeout-multiplier 3 -j2 \
		-C=--lib -C=--test=simulation $(if $(SHARD),--shard $(SHARD))
