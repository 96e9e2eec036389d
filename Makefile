# voxeld. `make run` starts a world at http://127.0.0.1:8080, `make test` checks everything.
# Needed on a fresh machine: Go, Node.js with npm, apt (for Chromium, which the browser test drives).

SHELL         := bash
.SHELLFLAGS   := -eu -o pipefail -c
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
.NOTPARALLEL: # the steps of `test` compete for the same cores, and their output should not mix

export CGO_ENABLED ?= 0

DATA          ?= data
ARGS          ?=
FUZZTIME      ?= 5m
BENCH         ?= .
BENCH_ARGS    ?= all
CHAOS         ?=
GORELEASER    ?= go run github.com/goreleaser/goreleaser/v2@v2.14.0
OBJECT_STORE  ?= go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
GOLANGCI_LINT ?= go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.11.4

# The output of voxeld --version; empty without git, and then Go's build information is used.
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || true)
COMMIT        ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || true)

CLIENT_SOURCES := $(shell find web -not -path '*/node_modules*' -not -path 'web/dist*' -type f \
	\( -name '*.ts' -o -name '*.html' -o -name '*.css' -o -name '*.json' -o -name '*.glsl' -o -path 'web/public/*' \))

.PHONY: run build daemon client test steps client-test lint lint-floors test-go fuzz-short fuzz mutants simulate races released-client luanti-current bench bench-micro bench-durable split-edits clocks backup-proof visitors race chaos object-store chart research monitoring dashboard-pictures e2e containers image image-prebuilt release release-files release-check package-check evening fmt clean help

run: build ## build everything, start a node on ./data, print the URL (ARGS="--join …" adds flags)
	exec bin/voxeld run --data-dir $(DATA) $(ARGS)

build: client daemon ## the client bundle and bin/voxeld

daemon: # stripped, as releases are: panics keep their traces
	go build -trimpath -ldflags "-s -w -X main.buildVersion=$(VERSION) -X main.buildCommit=$(COMMIT)" -o bin/voxeld ./cmd/voxeld

client: web/dist/index.html script/engine/quickjs.wasm ## the browser client into web/dist, and the engine for scripts

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	@echo '== client dependencies'
	npm --prefix web ci --no-audit --no-fund --loglevel=error
	@touch $@

web/dist/index.html: web/node_modules/.package-lock.json $(CLIENT_SOURCES)
	@echo '== client bundle'
	npm --prefix web run --silent build
	@touch $@ web/dist/.gitkeep

script/engine/quickjs.wasm: web/node_modules/.package-lock.json
	cp web/node_modules/quickjs-wasi/quickjs.wasm $@
	@touch $@

TEST_STEPS := client-test lint test-go research chart fuzz-short containers e2e

test: $(TEST_STEPS) ## run all tests: client, lint, Go, fuzz, a real browser
	@echo '== all tests passed'

client-test: web/node_modules/.package-lock.json
	@echo '== client: types, lint, format and unit tests'
	npm --prefix web run --silent check
	npm --prefix web run --silent test

steps: # for .ci/run
	@echo $(TEST_STEPS)

lint: lint-floors ## golangci-lint with the import floors of docs/ARCHITECTURE.md
	@echo '== seeded bugs apply (tools/mutants.sh)'
	git apply --check tools/mutants.patch
	@echo '== golangci-lint'
	$(GOLANGCI_LINT) run ./...
	cd research && $(GOLANGCI_LINT) run ./...

fmt: web/node_modules/.package-lock.json ## format the Go code and the client as lint requires
	$(GOLANGCI_LINT) fmt ./...
	cd research && $(GOLANGCI_LINT) fmt ./...
	npm --prefix web run --silent fmt

# depguard cannot see a go statement: floors 0 to 2 are step machines and start no goroutine.
lint-floors:
	@! grep -nE '^[[:space:]]*go[[:space:]]+(func|[A-Za-z_.]+\()' --include='*.go' --exclude='*_test.go' -r \
		blocktable chunk gameserver/interest grid history internal/kv motion overlay player policy region/membership \
		terrain trust vclock wire world 2>/dev/null \
		|| { echo 'floors 0 to 2 start no goroutine (docs/ARCHITECTURE.md)' >&2; exit 1; }

test/e2e/minecraft/node_modules/.package-lock.json: test/e2e/minecraft/package.json test/e2e/minecraft/package-lock.json
	@echo '== a Minecraft client, for the tests'
	npm --prefix test/e2e/minecraft ci --no-audit --no-fund --loglevel=error
	@touch $@

test-go: build test/e2e/minecraft/node_modules/.package-lock.json
	@echo '== go test'
	@tools/need.sh promtool prometheus || echo 'promtool is missing: the tests of deploy/ skip its part'
	@for need in 'pebble pebble' 'caddy caddy' 'nginx nginx-light'; do \
		tools/need.sh $$need || echo "$${need% *} is missing: the tests of HTTPS skip its part"; done
	@for need in 'gpg gnupg' 'ar binutils'; do \
		tools/need.sh $$need || echo "$${need% *} is missing: the test of the apt repository is skipped"; done
	@for need in '/usr/games/minetest minetest' 'Xvfb xvfb'; do \
		tools/need.sh $$need || echo "$${need% *} is missing: the test with Debian's client of Luanti is skipped"; done
	go test -vet=off -timeout 30m ./... # golangci-lint vets them

chart: ## render and check the Helm chart (a module of its own: Helm and Kubernetes' types take two minutes to compile)
	@echo '== Helm chart'
	cd deploy/helm && go test -vet=off ./...

research: ## test the simulators of the papers (a module of its own: the daemon cannot import it)
	@echo '== research'
	go -C research test -vet=off ./...

visitors: build test/e2e/minecraft/node_modules/.package-lock.json ## players of all games in one world, with a killed leader (BOTS=20 of each, for PLAY=5m)
	go test ./cmd/voxeld -run '^TestGamesTogether$$' -count 1 -v -timeout 30m -games.bots $(or $(BOTS),20) -games.play $(or $(PLAY),5m)

race: build ## go test with the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -timeout 60m $$(go list ./... | grep -v '/region$$')
	@# A process for each test of region: with many bubbles of testing/synctest, ThreadSanitizer ends it (golang/go issue 78156).
	CGO_ENABLED=1 go test -race -c -o bin/region.race ./region
	cd region && for test in $$(../bin/region.race -test.list .); do \
		echo $$test; ../bin/region.race -test.run "^$$test\$$" -test.timeout 20m; done

fuzz-short:
	@echo '== fuzz, 1 s each'
	@tools/fuzz.sh 1s

fuzz: ## fuzz every target for FUZZTIME (default 5m each; 60000000x: so many executions in total)
	@tools/fuzz.sh $(FUZZTIME)

mutants: ## seeded bugs in replica, region, world and store: a test must detect each (ARGS=-s: the simulation)
	@tools/mutants.sh $(ARGS)

SEEDS   ?= 1-100
MINUTES ?= 60

simulate: ## clusters in virtual time: SEEDS=1-100, or 7, or 1,5,9, of MINUTES=60 virtual minutes each
	go test ./replica -run '^TestSimulation$$' -count 1 -v -timeout 24h -simulation.seeds=$(SEEDS) -simulation.minutes=$(MINUTES)

races: ## 100,000 races of splits and merges with kills, drains, cuts and changes of members, in virtual time (SEEDS=…; takes 20 min)
	go test ./region -run '^TestRaces$$' -v -count 1 -timeout 0 -races.seeds $(or $(SEEDS),1000) -races.each 100

released-client: MINUTES = 10
released-client: ## the released client's behaviour against real daemons, for MINUTES=10
	go test ./cmd/voxeld -run '^TestReleasedClient$$' -count 1 -v -timeout 24h -released.minutes=$(MINUTES)

luanti-current: build ## the test with Debian's client of Luanti, with that of its suite testing (needs root and a Debian mirror)
	tools/luanti-current.sh

chaos: daemon ## faults against real daemons, for hours (CHAOS="kill --events 20" selects; needs root for disks and networks)
	go run ./test/chaos/cmd $(CHAOS)

object-store: ## backups in a real object store, versitygw, which checks signatures (go test uses gofakes3)
	GOBIN=$(CURDIR)/bin $(OBJECT_STORE)
	TEST_S3_SERVER=$(CURDIR)/bin/versitygw go test -count 1 ./cmd/voxeld/internal/objectstore
	TEST_S3_SERVER=$(CURDIR)/bin/versitygw go test -count 1 -run 'ObjectStore' ./cmd/voxeld

monitoring: ## alerts and dashboards: a real Prometheus, real daemons, every condition made (needs root for a full disk)
	@tools/need.sh promtool prometheus
	@tools/need.sh strace strace
	go test ./deploy/monitoring -count 1 -v -timeout 30m -monitoring.all

dashboard-pictures: ## draw the dashboards World and Node, with data of real daemons, into docs/images
	@tools/need.sh prometheus prometheus
	go test ./deploy/monitoring -run '^TestNodesFail$$' -count 1 -v -monitoring.pictures ../../docs/images

bench: ## measure daemons under load into docs/performance.md (BENCH_ARGS="one-chunk --players 100,500"; --help lists)
	go run ./test/bench/cmd --write $(BENCH_ARGS)

bench-micro: ## Go's micro-benchmarks of all packages (BENCH=regexp selects)
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

bench-durable: ## durable edits/s beside a three-member etcd, in the same run (ARGS="-rounds 5 …"; needs etcd-server)
	@tools/need.sh etcd etcd-server
	go run ./test/bench/durable $(ARGS)

split-edits: ## edits while their region is split and merged by hand, 50 times each: how long they take, into docs/scale.md (ARGS="--changes 10 …")
	go run ./test/bench/cmd --write split-edits $(ARGS)

clocks: ## daemons whose clocks are stepped, a day off, or months ahead: compiles Go's library with another clock (a quarter of an hour)
	go test ./cmd/voxeld -clocks -run 'TestClockSteps|TestClocksADayOff|TestCertificatesExpire' -v -count 1 -timeout 30m

backup-proof: ## back up and restore a world of 2,000 regions and a million edits while 40 players edit; count late ticks, also without a backup
	go test ./cmd/voxeld -run '^(TestLargeBackup|TestReplicasAfterRestore)$$' -v -count 1 -timeout 50m -backup-regions 2000 -backup-edits 500 -backup-players 40 -backup-rounds 10

e2e: build ## a real browser against a real daemon (PICTURES=1: with a picture of each step in test/e2e/screenshots)
	@echo '== end to end, in Chromium and Firefox'
	@tools/need.sh chromium chromium
	@for need in 'firefox-esr firefox-esr' 'Xvfb xvfb'; do \
		tools/need.sh $$need || echo "$${need% *} is missing: the test in Firefox is skipped"; done
	npm --prefix web run --silent e2e

containers: build ## the compose files on a container engine, with players, a cut network, a kill and an upgrade (needs root)
	@echo '== containers'
	@tools/containers.sh

image: ## build the container image voxeld:latest from the sources (needs docker)
	docker build --build-arg VERSION=$(VERSION) -t voxeld .

image-prebuilt: build ## the same with bin/voxeld: pulls nothing
	mkdir -p bin/image/data bin/image/tmp bin/image/token
	cp bin/voxeld bin/image/
	docker build --target prebuilt -t voxeld .

RELEASE_ARGS ?= --snapshot

release release-files: export COMMIT      := $(COMMIT)
release release-files: export COMMIT_TIME := $(shell git log -1 --format=%ct 2>/dev/null)
release release-files: export COMMIT_DATE := $(shell TZ=UTC0 git log -1 --date=iso-strict-local --format=%cd 2>/dev/null)
release release-files: export SOURCE_DATE_EPOCH = $(COMMIT_TIME)

release: ## packages, an apt repository of them, tarballs, checksums and bills of materials into bin/release (RELEASE_ARGS= for a tagged commit; APT_KEY=ID signs the repository)
	$(GORELEASER) release --clean $(RELEASE_ARGS)
	@tools/need.sh ar binutils
	tools/apt-repository.sh bin/release/apt bin/release/*.deb

# What packages contain besides the binary. Times in it come from the commit.
release-files: build
	rm -rf bin/files
	mkdir -p bin/files/completions
	bin/voxeld man bin/files/man
	gzip -9n bin/files/man/*
	for shell in bash zsh fish; do bin/voxeld completion $$shell >bin/files/completions/voxeld.$$shell; done
	bin/voxeld config sample | sed 's,^#data_dir = .*,data_dir = "/var/lib/voxeld",' >bin/files/voxeld.toml
	grep -q '^data_dir = "/var' bin/files/voxeld.toml
	go build -o bin/sbom ./tools/sbom

release-check: ## build the release twice, in two directories, and compare
	tools/release-check.sh $(RELEASE_ARGS)

package-check: ## install, upgrade, remove and purge the .deb of bin/release in a fresh Debian (needs root and debootstrap)
	tools/package-check.sh

evening: release ## an operator's first evening with the packages, on three fresh Debians (needs root and a Debian mirror)
	tools/evening.sh

clean: ## remove build output; the world in ./data stays
	rm -rf bin web/node_modules test/e2e/minecraft/node_modules
	find web/dist script/engine -mindepth 1 -not -name .gitkeep -delete

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 18
