# The verbs of this repository. Each brings what it needs: Go fetches the Go
# parts itself, scripts/deps the few programs that tests start.

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

# The Go modules of this repository, and those that hold packages of ours.
MODULES := . bench tools examples/messages internal/test/browser
SOURCES := . bench tools examples/messages internal/test/browser

# Git is asked for its commit where the binary is built, if it has one to tell,
# and nowhere else: all other verbs work in a tree that git does not trust.
export GOFLAGS := $(shell go env GOFLAGS) -buildvcs=false
VCS := $(if $(shell git rev-parse -q --verify HEAD 2>/dev/null),true,false)

tool = go tool -modfile=$(CURDIR)/tools/go.mod

.PHONY: help demo test test-long still soak designs attack build release try-release image extension race fuzz fuzz-seeds bench bench-compare bench-llm bench-sidecar bench-fleet bench-deliveries bench-page profile screenshots mutants prose locks cover lint check cross layers house vuln tidy deps clean
.DEFAULT_GOAL := help

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## what weir does for callers when an upstream stands still, and when a tenant floods it
	go build -trimpath -buildvcs=$(VCS) -o bin/weir-demo ./cmd/weir-demo
	bin/weir-demo

# Packages whose tests run in real time: after the others, whose load would disturb them, and all at
# once, as they mostly wait.
TIMED := ./internal/test/e2e ./internal/test/fleettest ./internal/test/attack
UNTIMED = $$(go list ./... | grep -v '/internal/test/e2e$$' | grep -v '/internal/test/fleettest$$' | grep -v '/internal/test/attack$$' | $(LONGEST))

# Lets the packages that take longest begin first: at the end one of them would be alone on its core.
LONGEST := awk '/\/(internal\/test\/supply|sidecar\/serve)$$/ {print; next} {rest = rest $$0 "\n"} END {printf "%s", rest}'

# Modules in whose tests there are goroutines of weir's, or of what is built with it.
RACED := . examples/messages internal/test/browser

# Packages that have no goroutines of weir's in the test's own process, and simulations that
# have one thread: the race detector finds nothing there, and takes long.
RACELESS := (/internal/(test/(e2e|fleettest|attack|docs|layers|supply|runbooks|alerts|ecs|grpctest|wstest)|mutants)|/observe/rules|/sidecar/learn|/limit/bucket|/cmd/weir-demo/demo)$$
ONETHREAD := TestARollingLimitIsUsed|TestBlocksNeitherHideNorMultiplyUnits|TestSharingExceedsNoKeysLimit|TestSharingExceedsNoKeysQuota|TestAPermitIsAllOrNone|TestWhatIsInUseIsOut|TestHoldersAreNeverOver|TestBelievingTheResetIsSafe|TestATableIsAMap|TestTheLastUnitsCanBeHadOneByOne
ONETHREAD := $(ONETHREAD)|TestDemoPrintsOneObjectAndEnds|TestAThousandInstancesShareALimit|TestLearnWritesAPatch|TestSignaturesAreRight|TestTheDefaultStaysClosedForUpstreamsThatErrALittle|TestAProcessEndsBetweenAnyTwoSteps|TestAnswersOfScriptsArePutAside|TestHoldsThatExpire|TestDecodedIsWhatWasEncoded|TestHostileBodiesCostWhatTheyWeigh|TestABodyCostsWhatItsValuesSay|TestSimulationOfS3|TestAlmostGoodFiles|TestSecondsAreBounded|TestHostileKeysBreakNoScrape
# Minutes and hours of virtual time over SQLite, whose code in Go is 25 times slower under the detector.
HOURS := TestSchedules|TestWhatIsHeldGoesOnWhenTheGatesOpen|TestExpiryTakesNoPermit|TestAnUpstreamThatComesBackIsBegunWithGently|TestNothingIsBurntWhileTheBreakerIsOpen|TestWhatIsHandedInBehindALimitIsNotRead|TestALargeBodyIsSentWholeAndGoesWithItsDelivery|TestWhatWaitsIsNotReadAgainAndAgain|TestWhatWaitsForASlowLimitIsNotReadToItsEnd|TestWhatComesWhileOneGoesNowAndThenIsNotRead|TestABacklogBehindALimitDoesNotDie|TestWhatComesStarvesNothingThatWaits|TestADeadLetterSaysWhoWasAway|TestACallbackThatNobodyKnows|TestTheHintIsObeyed
# How much is used of limits, though clocks jump, had of presets, or held in memory, in minutes of virtual time: what runs there
# runs in other tests of the package, too, for seconds.
USED := TestCrashStopsFleetForOutageAtMost|TestStoreReturnsToManyProcesses|TestStoreReturnsToManyProcessesAfterLongOutage|TestNothingIsOverInHistoriesOfYoungRollingLimits|TestYoungRollingLimitIsServedDuringOutage|TestManyKeysAreServedDuringOutage|TestLongCallsUseWhat.*|TestAllOfALimitIsUsedByWhoWaits|TestTwoKindsOfLimitsAreUsed|TestWhatComesBackIsUsed|TestARollingLimitOfAFleetIsUsed|TestABurstOfOneIsUsed|TestAFleetBeginsWithWhatHasComeSince|TestWhatStoodByOfADayIsNotSpentInHours|TestAHotKeyMovesNoOther|TestTheTurnOfAWindowLosesNothingOfIt|TestSimulationOfGeminiFree|TestDesignsArePlayed|TestNoBreakerOfAPresetOpensOnALittleTrouble|TestNoPresetDoesWorseThanTheClientItReplaces|TestAStallEndsWhenItEnds|TestInTheCalmNobodyIsRefused|TestStormOfFailures|TestASurgeAfterATrickleStaysWithinTheLimit|TestTheMachinesClockJumps|TestTheServersClockJumps|TestFleetKeepsBucket|TestFleetKeepsRolling|TestFleetKeepsFixed
RACETESTS := ^(TestWorlds|TestAFleetInEverySituation|TestNothingIsOverInRandomHistories|TestStandstill|TestHundredRunsOfOneSeedGiveOneTrace|TestSimulation|TestABranchThatNamesAnotherKeyIsDamage|TestDamageIsAnErrorAndNoPanic|$(HOURS)|$(ONETHREAD)|$(USED))$$

# go vet has looked before go test does, which would look again at all that is used, in every way it is built.
# Half the time packages wait for servers that they have started, so there are more at once than cores.
test: deps ## vet and test everything, fuzz targets on their seeds: some minutes
	@for m in $(SOURCES); do (cd $$m && go vet ./... && go test -vet=off -p 4 $(UNTIMED)); done
	@go test -vet=off -p 3 $(TIMED)

# Servers take long for every step of a history: those of queues are at length in SQLite.
SLOW := delivery/postgres,delivery/dynamosqs

# Lets the package begin first that takes longest, on one core.
RECOVERY := sed 's,^\(-run [^ ]*\)\(.*\)\( \./internal/test/recovery\),\1\3\2,'

test-long: deps ## the tests that are campaigns, at length: ten minutes at most
	@campaigns=$$(cd tools && go run ./campaigns -without '$(SLOW)' | $(RECOVERY)) && WEIR_LONG=1 go test -vet=off -p 2 -timeout 20m $$campaigns

still: deps ## test the main module on a machine that stands still for a second now and then, for the time FOR; STILL has flags of tools/still
	@cd tools && go run ./still -for $(FOR) $(STILL) ..

soak: deps ## what takes hours, by hand: campaigns that judge use, fuzzing, a fleet whose store stops, memory; the record is bench/records/soak.md
	@scripts/soak

designs: ## play each file of examples/designs for a minute in each situation, and write the figures into examples/designs/README.md
	@go test -vet=off ./internal/test/designs -run '^TestDesignsArePlayed$$' -count=1 -update

attack: deps ## attack weir serve as it ships, with calm traffic beside each attack
	@go test ./internal/test/attack -count=1 -v -run '^TestAttack' | grep -E '^(---|ok|FAIL|panic)|^ '

# What is given to users has no symbols for a debugger (stacks of panics are as they were), and none of the traces of
# gRPC, whose templates would keep every method of every type in the binary (docs/adr/0012-binary-size.md).
# The compiler inlines what the profile says is called most (docs/adr/0012-binary-size.md): that takes two minutes
# where nothing is cached.
RELEASE := -tags grpcnotrace -trimpath -ldflags '-s -w' -pgo=cmd/weir/weir.pgo

build: ## build bin/weir, as it is released: one static file
	CGO_ENABLED=0 go build $(RELEASE) -buildvcs=$(VCS) -o bin/weir ./cmd/weir

release: ## build bin/release: programs for Linux and macOS, bills of materials, Debian packages, checksums; the same bytes each time
	@RELEASE="$(RELEASE)" VCS=$(VCS) scripts/release bin/release

try-release: release ## try that: the image, the Debian package under a systemd of its own, the program for arm64; by root, TRY=image chooses
	@scripts/tryrelease bin/release $(TRY)

image: release ## build the image weir, from scratch, with buildah
	buildah build --layers=false --timestamp "$$(git log -1 --format=%ct)" -t weir -f deploy/container/Containerfile .

extension: ## build bin/extensions/weir-extension, as a layer of AWS Lambda has it: GOARCH=arm64 for Graviton
	GOOS=linux CGO_ENABLED=0 go build $(filter-out -pgo=%,$(RELEASE)) -buildvcs=$(VCS) -o bin/extensions/weir-extension ./cmd/weir-extension

# Some packages wait for servers here, too.
race: deps ## test with the race detector
	@scripts/deps gcc
	@for m in $(RACED); do (cd $$m && CGO_ENABLED=1 go test -race -vet=off -p 3 -timeout 20m -skip '$(RACETESTS)' $$(go list ./... | grep -vE '$(RACELESS)' | $(LONGEST))); done

fuzz: deps ## fuzz every target, each for FUZZTIME
	@scripts/fuzz $(FUZZTIME)

fuzz-seeds: deps ## run the fuzz targets on their seeds only, as make test does, too
	@go test -run '^Fuzz' $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u)

bench: ## measure weir beside its peers: COUNT rounds of BENCHTIME; BENCH chooses groups
	@scripts/bench '$(BENCH)' $(COUNT) $(BENCHTIME)

bench-compare: ## measure two revisions beside each other: OLD=v0.3.0 NEW=. (BENCH, COUNT, BENCHTIME, PACKAGES)
	@BENCH='$(BENCH)' COUNT=$(COUNT) BENCHTIME=$(BENCHTIME) scripts/bench-compare $(OLD) $(NEW)

bench-llm: ## measure the sidecar in front of language models, beside a bare reverse proxy
	go test ./llm/gateway -run '^$$' -bench 'PassThrough|CacheHit|Degraded|FirstContent' -benchtime 4000x -count 3

profile: ## find out anew where weir serve's processor time goes, for make build: cmd/weir/weir.pgo
	CGO_ENABLED=0 go build -tags grpcnotrace,profile -trimpath -o bin/weir.profile ./cmd/weir
	cd bench && go build -o ../bin/bench.sidecar ./cmd/sidecar
	rm -rf bin/profiles && mkdir bin/profiles
	WEIR_PROFILES=$(CURDIR)/bin/profiles bin/bench.sidecar -rounds 3 -each 1s bin/weir.profile
	cd tools && go run ./profile ../cmd/weir/weir.pgo ../bin/profiles/*.pprof

bench-sidecar: build ## measure weir serve as it ships, in a process of its own, beside the least that does the same and nginx: COUNT rounds of EACH, the rows that ONLY names
	cd bench && go build -o ../bin/bench.sidecar ./cmd/sidecar && ../bin/bench.sidecar -rounds $(COUNT) -each $(EACH) -only "$(ONLY)" ../bin/weir

bench-fleet: deps ## measure limits that a fleet shares, on servers that it starts itself
	@scripts/bench Fleet $(COUNT) 500ms

bench-deliveries: deps build ## measure deliveries in SQLite and PostgreSQL, on a server that it starts itself, beside bare inserts, direct calls and River
	@mkdir -p bin && cd bench && go build -o ../bin/bench.deliveries ./cmd/deliveries && ../bin/bench.deliveries -rounds $(COUNT)

bench-page: build ## measure the status page: size, first paint in a Chromium, what a hundred viewers cost
	@scripts/deps chromium
	cd internal/test/browser && go build -o ../../../bin/bench.page ./measure && ../../../bin/bench.page ../../../bin/weir

screenshots: ## take the pictures of the status page anew, while an outage plays for four minutes
	@scripts/deps chromium
	cd internal/test/browser && go run ./shots ../../../docs/images

mutants: deps ## break weir on purpose, a small piece at a time: each must be noticed by a test; RUN=expression chooses some
	@go run ./internal/mutants -run '$(RUN)'

# A watched mutex allocates and is slow: tests that count allocations are left out.
locks: deps ## test with a detector of lock-order inversions in place of sync's mutexes
	@packages=$(UNTIMED); cd tools && go run ./locks -skip 'Allocat' $$packages

cover: deps ## test coverage, per package and in total
	@go test -coverprofile=cover.out ./...
	@go tool cover -func=cover.out | tail -n 1

lint: prose ## formatting, vet, staticcheck, prose, and the state of the modules
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "run gofmt -w on:" $$unformatted; exit 1; }
	@for m in $(SOURCES); do (cd $$m && go vet ./... && $(tool) staticcheck ./...); done
	@for m in $(MODULES); do (cd $$m && go mod tidy -diff && go mod verify) || { echo "see above; make tidy mends go.mod in $$m"; exit 1; }; done

prose: ## check the wording of the pages and packages that tools/prose/checked.txt lists
	@go -C tools build -o ../bin/prose ./prose && bin/prose -max 4 -list tools/prose/checked.txt

check: lint layers cross ## lint, layering, and builds for every platform

cross:
	@for p in $(PLATFORMS); do \
		echo "$$p"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go vet ./...; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go build ./...; \
	done

house: ## measure how the tree is built: lines, comments, functions with too many ways, exported names that nobody uses
	@cd tools && go run ./house

layers:
	go test -count=1 ./internal/test/layers

vuln: ## look for known vulnerabilities in what is used (asks the vulnerability database; says so where it cannot be reached)
	@scripts/vuln $(SOURCES)

tidy: ## mend go.mod and go.sum of every module
	@for m in $(MODULES); do (cd $$m && go mod tidy); done

# What the tests need beside Go: name the commands here.
deps:
	@scripts/deps redis-server redis-cli initdb pgbouncer dynalite fauxqs promtool prometheus-alertmanager systemd-analyze dpkg-deb chromium python3 boto3 requests aws node npm curl git

clean: ## remove what was built
	rm -rf bin cover.out
