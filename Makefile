# The targets of this repository. Each installs its dependencies: Go fetches the modules,
# scripts/deps the programs that tests start.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

FUZZTIME  ?= 10s
COUNT     ?= 6
BENCH     ?= .
BENCHTIME ?= 100ms
EACH      ?= 2s
RUN       ?=
FOR       ?= 20m
STILL     ?=
TRY       ?=
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# The Go modules of this repository, and those that contain weir's packages.
MODULES := . bench tools examples/messages internal/test/browser
SOURCES := . bench tools examples/messages internal/test/browser

# Only targets that build the binary call git for the commit. The others also work in a tree
# that git does not trust.
export GOFLAGS := $(shell go env GOFLAGS) -buildvcs=false
VCS := $(if $(shell git rev-parse -q --verify HEAD 2>/dev/null),true,false)

tool = go tool -modfile=$(CURDIR)/tools/go.mod

.PHONY: help demo test test-long still soak designs attack build release try-release image extension race fuzz fuzz-seeds bench bench-compare bench-llm bench-sidecar bench-fleet bench-deliveries bench-page profile screenshots mutants prose locks cover lint check cross layers house vuln tidy deps clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## show what weir does for callers when an upstream stalls, and when a tenant floods it
	go build -trimpath -buildvcs=$(VCS) -o bin/weir-demo ./cmd/weir-demo
	bin/weir-demo

# Packages whose tests run in real time. They run after the others, whose load would disturb them, and
# in parallel, because they mostly wait.
TIMED := ./internal/test/e2e ./internal/test/fleettest ./internal/test/attack
UNTIMED = $$(go list ./... | grep -v '/internal/test/e2e$$' | grep -v '/internal/test/fleettest$$' | grep -v '/internal/test/attack$$' | $(LONGEST))

# The packages that take longest start first. Otherwise one of them would run alone at the end.
LONGEST := awk '/\/(internal\/test\/supply|sidecar\/serve)$$/ {print; next} {rest = rest $$0 "\n"} END {printf "%s", rest}'

# Modules whose tests run goroutines of weir or of programs built with it.
RACED := . examples/messages internal/test/browser

# Packages without goroutines of weir in the test's process, and simulations with one thread.
# The race detector finds nothing there, and takes long. Single tests call raced.Skip.
RACELESS := (/internal/(test/(e2e|fleettest|attack|docs|layers|supply|runbooks|alerts|ecs|grpctest|wstest)|mutants)|/observe/rules|/sidecar/learn|/limit/bucket|/internal/play|/cmd/weir-demo/demo)$$

# go vet runs first. go test would vet all packages again for each build variant.
# Packages wait for their servers half of the time, so more run in parallel than there are cores.
# With an empty build cache, the builds of a release alone can take ten minutes.
test: deps ## vet and test everything, including fuzz seeds: some minutes
	@for m in $(SOURCES); do (cd $$m && go vet ./... && go test -vet=off -p 4 -timeout 20m $(UNTIMED)); done
	@go test -vet=off -p 3 $(TIMED)

# The clients have a gigabyte.
test-clients: ## run coding agents, command line tools and other clients with weir run
	@scripts/deps clients dynalite curl git npm aws gh kubectl cargo python3 pip boto3 requests
	@PATH="$(CURDIR)/.deps/clients/node_modules/.bin:$$PATH" NODE_PATH="$(CURDIR)/.deps/clients/node_modules:$(CURDIR)/.deps/npm/node_modules" \
		go test -count=1 -tags clients ./cmd/weir -run '^TestRun(ReadsCallsOf|LimitsTools|PassesWebSocket|BudgetOf)'

# Servers are slow for each step of a history. Long histories of queues run in SQLite.
SLOW := delivery/postgres,delivery/dynamosqs

# The package that takes longest on one core starts first.
RECOVERY := sed 's,^\(-run [^ ]*\)\(.*\)\( \./internal/test/recovery\),\1\3\2,'

test-long: deps ## run the long tests: at most ten minutes
	@campaigns=$$(cd tools && go run ./campaigns -without '$(SLOW)' | $(RECOVERY)) && WEIR_LONG=1 go test -vet=off -p 2 -timeout 40m $$campaigns

still: deps ## test the main module for the time FOR while processes freeze for a second now and then; STILL has flags of tools/still
	@cd tools && go run ./still -for $(FOR) $(STILL) ..

soak: deps ## run what takes hours: measurements of usage, fuzzing, store outages, memory; writes bench/records/soak.md
	@scripts/soak

designs: ## simulate each file of examples/designs for a minute in each situation, and write the figures into examples/designs/README.md
	@go test -vet=off ./internal/test/designs -run '^TestDesignsArePlayed$$' -count=1 -update

attack: deps ## attack weir serve as released, with normal traffic during each attack
	@go test ./internal/test/attack -count=1 -v -run '^TestAttack' | grep -E '^(---|ok|FAIL|panic)|^ '

# Released binaries have no debug symbols (stack traces of panics are complete) and no gRPC traces, whose templates
# would keep every method of every type in the binary (docs/adr/0012-binary-size.md).
# The compiler inlines the functions that the profile shows as hot. Without a cache that takes two minutes.
RELEASE := -tags grpcnotrace -trimpath -ldflags '-s -w' -pgo=cmd/weir/weir.pgo

build: ## build bin/weir as released: one static file
	CGO_ENABLED=0 go build $(RELEASE) -buildvcs=$(VCS) -o bin/weir ./cmd/weir

release: ## build bin/release reproducibly: programs for Linux and macOS, bills of materials, Debian packages, checksums
	@RELEASE="$(RELEASE)" VCS=$(VCS) scripts/release bin/release

try-release: release ## test the release as root: the image, the Debian package with systemd, the program for arm64; TRY=image selects one
	@scripts/tryrelease bin/release $(TRY)

image: release ## build the image weir, from scratch, with buildah
	buildah build --layers=false --timestamp "$$(git log -1 --format=%ct)" -t weir -f deploy/container/Containerfile .

extension: ## build bin/extensions/weir-extension for a layer of AWS Lambda: GOARCH=arm64 for Graviton
	GOOS=linux CGO_ENABLED=0 go build $(filter-out -pgo=%,$(RELEASE)) -buildvcs=$(VCS) -o bin/extensions/weir-extension ./cmd/weir-extension

# Here also some packages wait for servers.
race: deps ## test with the race detector
	@scripts/deps gcc
	@for m in $(RACED); do (cd $$m && CGO_ENABLED=1 go test -race -vet=off -p 3 -timeout 20m $$(go list ./... | grep -vE '$(RACELESS)' | $(LONGEST))); done

fuzz: deps ## fuzz every target, each for FUZZTIME
	@scripts/fuzz $(FUZZTIME)

fuzz-seeds: deps ## run the fuzz targets on their seeds only, which make test includes
	@go test -run '^Fuzz' $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u)

bench: ## measure weir and comparable libraries: COUNT rounds of BENCHTIME; BENCH selects groups
	@scripts/bench '$(BENCH)' $(COUNT) $(BENCHTIME)

bench-compare: ## compare two revisions: OLD=v0.3.0 NEW=. (BENCH, COUNT, BENCHTIME, PACKAGES)
	@BENCH='$(BENCH)' COUNT=$(COUNT) BENCHTIME=$(BENCHTIME) scripts/bench-compare $(OLD) $(NEW)

bench-llm: ## measure the sidecar in front of language models, and a bare reverse proxy
	go test ./llm/gateway -run '^$$' -bench 'PassThrough|CacheHit|Degraded|FirstContent' -benchtime 4000x -count 3

profile: ## write the CPU profile of weir serve that make build uses: cmd/weir/weir.pgo
	CGO_ENABLED=0 go build -tags grpcnotrace,profile -trimpath -o bin/weir.profile ./cmd/weir
	cd bench && go build -o ../bin/bench.sidecar ./cmd/sidecar
	rm -rf bin/profiles && mkdir bin/profiles
	WEIR_PROFILES=$(CURDIR)/bin/profiles bin/bench.sidecar -rounds 3 -each 1s bin/weir.profile
	cd tools && go run ./profile ../cmd/weir/weir.pgo ../bin/profiles/*.pprof

bench-sidecar: build ## measure weir serve as released, a minimal equivalent and nginx: COUNT rounds of EACH; ONLY selects rows
	cd bench && go build -o ../bin/bench.sidecar ./cmd/sidecar && ../bin/bench.sidecar -rounds $(COUNT) -each $(EACH) -only "$(ONLY)" ../bin/weir

bench-fleet: deps ## measure shared limits, on servers that it starts
	@scripts/bench Fleet $(COUNT) 500ms

bench-deliveries: deps build ## measure deliveries in SQLite and in a PostgreSQL that it starts, and bare inserts, direct calls and River
	@mkdir -p bin && cd bench && go build -o ../bin/bench.deliveries ./cmd/deliveries && ../bin/bench.deliveries -rounds $(COUNT)

bench-page: build ## measure the status page: size, first paint in Chromium, CPU for 100 viewers
	@scripts/deps chromium
	cd internal/test/browser && go build -o ../../../bin/bench.page ./measure && ../../../bin/bench.page ../../../bin/weir

screenshots: ## update the pictures of the status page during a simulated outage of four minutes
	@scripts/deps chromium
	cd internal/test/browser && go run ./shots ../../../docs/images

mutants: deps ## break one line of weir at a time: a test must fail for each; RUN=expression selects some
	@go run ./internal/mutants -run '$(RUN)'

# A watched mutex allocates and is slow: tests that count allocations are excluded.
locks: deps ## test with mutexes that detect lock-order inversions
	@packages=$(UNTIMED); cd tools && go run ./locks -skip 'Allocat' $$packages

cover: deps ## measure test coverage, per package and in total
	@go test -coverprofile=cover.out ./...
	@go tool cover -func=cover.out | tail -n 1

lint: prose ## check formatting, vet, staticcheck, prose, and the state of the modules
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "run gofmt -w on:" $$unformatted; exit 1; }
	@for m in $(SOURCES); do (cd $$m && go vet ./... && $(tool) staticcheck ./...); done
	@for m in $(MODULES); do (cd $$m && go mod tidy -diff && go mod verify) || { echo "see above; make tidy mends go.mod in $$m"; exit 1; }; done

prose: ## check the wording of the pages and packages that tools/prose/checked.txt lists
	@go -C tools build -o ../bin/prose ./prose && bin/prose -max 4 -list tools/prose/checked.txt

check: lint layers cross ## run lint, layers, and builds for every platform

cross:
	@for p in $(PLATFORMS); do \
		echo "$$p"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go vet ./...; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go build ./...; \
	done

house: ## measure the tree: lines, comments, complex functions, unused exported names
	@cd tools && go run ./house

layers:
	go test -count=1 ./internal/test/layers

vuln: ## check dependencies for known vulnerabilities; prints a note if the database is unreachable
	@scripts/vuln $(SOURCES)

tidy: ## update go.mod and go.sum of every module
	@for m in $(MODULES); do (cd $$m && go mod tidy); done

# Commands that the tests need in addition to Go.
deps:
	@scripts/deps redis-server redis-cli initdb pgbouncer dynalite fauxqs promtool prometheus-alertmanager systemd-analyze dpkg-deb chromium python3 boto3 requests aws node npm curl git

clean: ## remove build output
	rm -rf bin cover.out
