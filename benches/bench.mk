# What measures dq. `need` and `module` are those of the Makefile, which includes this.

# In a target folder of its own: in the other one each run would have the module built anew. FLOOR: commands that do
# nothing, to compare with; under CI clippy checks it first, which would optimize it less. OPPONENTS: what we compare with.
BENCH = @$(CHECKED) DQ_PGO='$(PGO)' JOBS='$(JOBS)' DQ_FLOOR='$(TARGET)/release/libfloor.so' DQ_BENCH_OUT='$(TARGET)/bench' CARGO_TARGET_DIR='$(TARGET)/harness' \
	$(ON) $(CARGO) bench -q --no-default-features --bench bench
FLOOR_AS = CARGO_TARGET_DIR='$(TARGET)' $(CARGO) build -q --release -p dq-floor
FLOOR = @$(if $(CI),$(CHECKED) $(FLOOR_AS) && )$(FLOOR_AS)
OPPONENTS := $(TARGET)/opponents
opponents = @tools/testing/opponents.sh '$(OPPONENTS)' && server=$$(tools/servers/server.sh) && '$(OPPONENTS)/python/bin/python' \
	benches/opponents/harness/run.py --out '$(OPPONENTS)' --json '$(TARGET)/bench' --module '$(MODULE)' --server "$$server" \
	$(if $(QUICK),--quick) $(1) --only $(ONLY)

# --- Figures

bench: bench-core $(if $(ONLY),,bench-opponents) ## all figures: bench-core, then bench-opponents; ONLY="wake idle": some of bench-core

bench-quick bench-core bench-scale: ## the main figures; our goals, against a sorted set and scripts; ten million jobs, a million queues (QUICK=1); ONLY="huge huge-pair" JOBS=100000000
	$(call module,server)
	$(FLOOR)
	$(BENCH) -- $(if $(filter %-quick,$@)$(if $(filter %-scale,$@),$(QUICK)),--quick) $(if $(filter %-scale,$@),--large) $(ONLY)

# Built as the tests are: what it counts is the server's.
bench-count: ## instructions and cache misses per command against benches/counts.txt, and the files that a plain job runs through; RECORD=1 writes it, PGO=1: of such a build
	$(call module,server valgrind)
	$(FLOOR)
	$(subst $(TARGET)/harness,$(TARGET),$(BENCH)) --profile test -- --count $(if $(RECORD),--record)

# Of bench-libraries what ONLY names takes the place of what was measured before; so it names all that this is compared with.
bench-opponents bench-libraries bench-tenants bench-flows bench-steps: ## dq beside Celery, BullMQ, ...: queues, libraries, tenants, batches, steps; ONLY="adds celery", QUICK=1
	$(call module,server)
	$(call opponents,$(filter-out --opponents,$(@:bench-%=--%)))

bench-celery: ## how late Celery tasks with an ETA begin, beside a plain client; ARGS="--pool solo --count 1000"
	$(call module,server python)
	@python=$$(tools/install/venv.sh '$(TARGET)/brokers/celery' clients/celery/tests/requirements.txt) && \
	$(ON) sh -c "cd clients/celery && '$$python' tests/lateness.py $(ARGS)"

bench-page: ## docs/benchmarks.md, benches/README.md, medians and plots anew from the figures of the last make bench
	$(call need,python)
	@python=$$(tools/install/python.sh matplotlib) && "$$python" benches/page/page.py '$(TARGET)/bench'

bench-check: ## both pages say what benches/medians.txt and counts.txt say; and the checks of what measures
	$(call need,python)
	@python3 benches/page/test_page.py
