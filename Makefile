# make test is the one command that passes all tests of behaviour. .ci/run calls it, then the
# engine's tests under the race detector, and then a quarter of those that take long. make all plays
# everything.

# The modules with tests, each with its own dependencies.
MODULES := . factory/typed controllerruntime sqlsink mirror examples/operator examples/stream e2e e2e/browser e2e/crdtypes e2e/dashboards bench
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# For how long each fuzz target runs.
FUZZTIME ?= 3s

# Everything is built with the race detector, also the programs that tests build, and with
# wirepoison, which overwrites lent bytes when their loan ends.
RACE := GOFLAGS="$(shell go env GOFLAGS) -race -tags=wirepoison"

# The modules of the library with the newest k8s.io modules and controller-runtime, which all other
# modules have, so that make test and the demo build these once; and with the oldest that work, those
# of their go.mod files.
NEWEST := GOWORK=$(CURDIR)/.ci/go.work
OLDEST := GOWORK=$(CURDIR)/.ci/oldest.work

# What comes next: the newest pre-release of client-go, which .ci/next/go.mod names, and the newest Go,
# which the module proxy has. The tag has the tests of what only client-go 0.38 has.
NEXT_GO := go1.27.3
NEXT := GOTOOLCHAIN=$(NEXT_GO) GOWORK=$(CURDIR)/.ci/next.work GOFLAGS="$(shell go env GOFLAGS) -tags=clientgo038"

NEXT_BENCH := GOTOOLCHAIN=$(NEXT_GO) GOWORK=$(CURDIR)/.ci/next-bench.work

# $(RUNS) NAME COMMAND ... prints at least every 15 seconds what runs.
RUNS := $(CURDIR)/bin/heartbeat

.PHONY: attack browser browser-install postgres-install servers test estimate quick all quarter lint unit race race-changed oldest next next-sample examples-race proof torture mutants fuzz examples controllerruntime e2e-short e2e crdtypes dashboards demo bench bench-quick bench-next bench-test

# The three run side by side: the examples and e2e wait for processes and servers half of the time.
test: estimate
	@$(MAKE) --no-print-directory -j3 unit examples e2e-short

estimate:
	@echo "make test takes about 10 minutes on two cores; 15 if nothing is built yet."

# Compiles and vets the library, and tests its core without the race detector. Takes less than a
# minute once its dependencies are built.
quick: bin/heartbeat
	$(NEWEST) $(RUNS) vet go vet ./...
	$(NEWEST) $(RUNS) quick go test -json -vet=off -timeout 5m . ./tests/... ./internal/...

# The go command knows whether these are up to date.
.PHONY: bin/heartbeat bin/staticcheck
bin/heartbeat:
	@go build -buildvcs=false -o $@ ./internal/testkit/heartbeat

bin/staticcheck:
	@GOBIN=$(CURDIR)/bin go install $(STATICCHECK)

# Everything that tests, but make servers and make mutants.
all:
	@echo "make all takes more than an hour on two cores."
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory lint race
	@$(MAKE) --no-print-directory -j2 $(QUARTER1) $(QUARTER2) $(QUARTER3) $(QUARTER4)

# What takes long, in four parts of about the same length. Two targets run at a time: most wait for
# processes and servers half of the time.
QUARTER1 := e2e
QUARTER2 := controllerruntime crdtypes dashboards browser bench-test
QUARTER3 := proof
QUARTER4 := attack fuzz next-sample

# One of them, the next one with each commit. The proof has two fifths of its days, and the attack half
# of its time, with the same seed each time.
QUARTER ?= $(shell echo $$(( $$(git rev-list --count HEAD) % 4 + 1 )))
quarter:
	@echo "The quarter $(QUARTER) of the long runs: $(QUARTER$(QUARTER))."
	@$(MAKE) --no-print-directory -j2 $(QUARTER$(QUARTER)) DAYS=80 ATTACK_SEED=1 ATTACK_SECONDS=75 ATTACK_ROUNDS=1

# Formatting, vet and staticcheck, in every module. Each module is built as for its tests, with the
# race detector or without it: the dependencies of e2e/crdtypes and e2e/dashboards take minutes.
lint: bin/heartbeat bin/staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	@for module in $(MODULES); do \
		case $$module in .|factory/typed|controllerruntime|sqlsink) export $(NEWEST);; *) export GOWORK=off;; esac; \
		case $$module in e2e/crdtypes|e2e/dashboards|e2e/browser|bench) export GOFLAGS="$(shell go env GOFLAGS)";; *) export $(RACE);; esac; \
		$(RUNS) "vet $$module" go vet -C $$module ./... && \
		$(RUNS) "staticcheck $$module" env -C $$module $(CURDIR)/bin/staticcheck ./... || exit 1; \
	done

unit: bin/heartbeat postgres-install
	$(NEWEST) $(RUNS) unit go test -json -vet=off -timeout 30m ./...
	$(NEWEST) $(RUNS) "unit factory/typed" go test -C factory/typed -json -vet=off -timeout 30m ./...
	$(NEWEST) $(RUNS) "unit controllerruntime" go test -C controllerruntime -json -vet=off -timeout 30m ./...
	$(NEWEST) $(RUNS) "unit sqlsink" go test -C sqlsink -json -vet=off -timeout 30m ./...

# The same under the race detector, the library with the oldest versions.
race: bin/heartbeat
	@$(MAKE) --no-print-directory -j2 oldest examples-race

# controller-runtime's own tests of the oldest version are in make controllerruntime.
oldest: bin/heartbeat postgres-install
	$(OLDEST) $(RACE) $(RUNS) "unit with -race" go test -json -vet=off -timeout 30m ./...
	$(OLDEST) $(RACE) $(RUNS) "factory/typed with -race" go test -C factory/typed -json -vet=off -timeout 30m ./...
	$(OLDEST) $(RACE) $(RUNS) "controllerruntime with -race" go test -C controllerruntime -json -vet=off -timeout 30m ./...
	$(OLDEST) $(RACE) $(RUNS) "sqlsink with -race" go test -C sqlsink -json -vet=off -timeout 30m ./...

# A part of it, for .ci/run: the root and internal, a quarter of the tests from outside, which belongs to
# a quarter of the long runs, and the other packages and modules that the last 25 commits changed; all
# of these where the history is shorter.
ENGINE = . ./internal/... $(RACE$(QUARTER))
RACE1 := ./tests/delivery
RACE2 := ./tests/servers ./tests/status
RACE3 := ./tests/checkpoints ./tests/compat
RACE4 := ./tests/lists ./tests/sharing ./tests/watches
race-changed: bin/heartbeat postgres-install
	@set -e; changed=$$(git diff --name-only HEAD~25 -- '*.go' 2>/dev/null || git ls-files '*.go'); packages=; \
	for package in $$($(OLDEST) go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... | sed -n 's|^$(CURDIR)/||p' | grep -vE '^(internal|tests)/'); do \
		! echo "$$changed" | grep -q "^$$package/[^/]*$$" || packages="$$packages ./$$package"; \
	done; \
	$(OLDEST) $(RACE) $(RUNS) "engine with -race" go test -json -vet=off -timeout 30m $(ENGINE) $$packages; \
	for module in factory/typed controllerruntime sqlsink mirror examples/operator examples/stream; do \
		echo "$$changed" | grep -q "^$$module/" || continue; \
		case $$module in factory/typed|controllerruntime|sqlsink) export $(OLDEST);; *) export GOWORK=off;; esac; \
		$(RACE) $(RUNS) "$$module with -race" go test -C $$module -json -vet=off -timeout 30m ./...; \
	done

# The tests of the library with what comes next.
next: bin/heartbeat postgres-install
	$(NEXT) $(RUNS) next go test -json -timeout 30m ./...
	$(NEXT) $(RUNS) "next factory/typed" go test -C factory/typed -json -timeout 30m ./...
	$(NEXT) $(RUNS) "next controllerruntime" go test -C controllerruntime -json -timeout 30m ./...
	$(NEXT) $(RUNS) "next sqlsink" go test -C sqlsink -json -timeout 30m ./...

# A sample of it: all packages are built, and those tested that have failed with client-go 0.38 or
# with Go 1.27 before.
next-sample: bin/heartbeat
	$(NEXT) $(RUNS) "next build" go build ./... ./factory/typed/... ./controllerruntime/... ./sqlsink/...
	$(NEXT) $(RUNS) "next sample" go test -json -timeout 20m ./api ./objectcache ./internal/leaf/protoobject ./internal/engine/server ./informertest ./fleet/shards ./tests/servers ./factory/typed

examples-race: bin/heartbeat postgres-install
	$(RACE) $(RUNS) "mirror with -race" go test -C mirror -json -vet=off -timeout 30m ./...
	$(RACE) $(RUNS) "examples/operator with -race" go test -C examples/operator -json -vet=off -timeout 20m ./...
	$(RACE) $(RUNS) "examples/stream with -race" go test -C examples/stream -json -vet=off -timeout 20m ./...

# Random runs, the same each time, as many as DAYS says; these are the numbers of the default:
# 200 random scripts of a simulated day, judged by the oracle; 10 more under the race detector, with
# days that unit and race do not have, which play the first 4; 40 random restarts, 40 crowds of
# informers, and 40 plays of replicas that take turns at a checkpoint, of which unit has 10; 5 days
# that are played twice as WebAssembly, and have the same history; 100 random plays of replicas that
# share a fleet, of which unit has 4; 50 kills of mirror with each database, and of a stream, of
# which make examples has 6 and 8. What attack does to replicas of mirror, make e2e does for twenty
# seconds.
DAYS ?= 200
proof: bin/heartbeat postgres-install
	INFORMER_TORTURE=$(DAYS) $(NEWEST) $(RUNS) proof \
		go test -json -count=1 -vet=off -tags wirepoison -timeout 40m -run 'Test(Cached|Restored|Sharded|)RandomScripts' ./informertest/script
	INFORMER_TORTURE=$$(( $(DAYS) / 20 )) INFORMER_TORTURE_FROM=5 $(OLDEST) $(RACE) $(RUNS) "proof with -race" \
		go test -json -count=1 -vet=off -timeout 40m -run RandomScripts ./informertest/script
	INFORMER_TORTURE=$$(( $(DAYS) / 5 )) $(OLDEST) $(RACE) $(RUNS) "proof in a crowd" \
		go test -json -count=1 -vet=off -timeout 40m -run 'Torture|ReplicasTakeTurns' ./tests/checkpoints ./tests/sharing
	INFORMER_DAYS=$$(( $(DAYS) / 40 )) $(RUNS) "proof of replays" \
		go test -C e2e -json -count=1 -vet=off -timeout 40m ./replay
	INFORMER_TORTURE=$$(( $(DAYS) / 2 )) $(NEWEST) $(RUNS) "proof of replicas" \
		go test -json -count=1 -vet=off -timeout 40m -run RandomPlays ./fleet/shards
	MIRROR_KILLS=$$(( $(DAYS) / 4 )) $(RUNS) "proof of restarts" \
		go test -C mirror -json -count=1 -timeout 40m -run TestKilledAtAnyMoment .
	STREAM_KILLS=$$(( $(DAYS) / 4 )) $(RUNS) "proof of the stream" \
		go test -C examples/stream -json -count=1 -timeout 40m -run AfterKills ./demo

# As many scripts as you like, others in each run, and random restarts as well.
TORTURE ?= 10000
TORTURE_FROM ?= $(shell date +%s)
torture:
	INFORMER_TORTURE=$(TORTURE) INFORMER_TORTURE_FROM=$(TORTURE_FROM) \
		go test -count=1 -tags wirepoison -timeout 0 -v -run 'Torture|ReplicasTakeTurns|RandomScripts|RandomPlays' ./tests/... ./informertest/script ./fleet/shards

# The method of attacks: half of the time, all hostile answers in all list modes, from the start and
# later, each round with other changes; then rounds in which three mirrors with clocks ten minutes
# apart are killed, paused, stopped, and cut off from their Leases, clusters and PostgreSQL, which
# is killed, read-only, full, and fails over; the Leases are deleted, and an API server is killed.
# It prints rounds, the longest time without an owner, and wrong rows, of which there are none
# unless it fails. A round of mirrors takes more than a minute.
ATTACK_SECONDS ?= 150
ATTACK_ROUNDS ?= 2
ATTACK_SEED ?= $(shell date +%s)
attack: bin/heartbeat postgres-install
	INFORMER_ATTACK=$(ATTACK_SECONDS) $(NEWEST) $(RUNS) "attack with answers" \
		go test -v -count=1 -vet=off -timeout 0 -run TestHostileAnswers ./informertest/script
	MIRROR_ROUNDS=$(ATTACK_ROUNDS) MIRROR_SEED=$(ATTACK_SEED) $(RUNS) "attack on replicas" \
		go test -C e2e -v -count=1 -timeout 0 -run TestReplicasAreKilledPausedAndStopped ./mirror

# A sample of the one-line changes of the core packages, each with the tests that should
# notice it: about a minute for four of them. A change that no test notices fails it,
# unless internal/testkit/mutants/survivors.txt explains why.
MUTANTS ?= 60
MUTANTS_SEED ?= $(shell date +%s)
# Packages, as internal/engine/deltaqueue; all of the core if empty.
MUTANTS_OF ?=
mutants:
	nice -n 10 go run ./internal/testkit/mutants -n $(MUTANTS) -seed $(MUTANTS_SEED) $(MUTANTS_OF)

# Every fuzz target of every package, one after the other, in about two minutes. Each
# begins with the inputs in testdata/fuzz, which unit runs as well, and not with what
# former runs have found: to try that again would take all of its time. An input that
# fails is written to testdata/fuzz, to be committed with what mends it. Up to Go 1.26, a
# target may also fail by chance when its time is over, https://go.dev/issue/75804: it is
# tried again then.
fuzz: bin/heartbeat
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	for dir in $$(git grep -lE --untracked '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u); do \
		cd "$(CURDIR)/$$dir"; \
		$(NEWEST) $(RUNS) "build $$dir" go test -c -fuzz . -o "$$work/fuzz.test" .; \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' ./*_test.go); do \
			for try in 1 2 3; do \
				echo "fuzz $$dir $$target"; rm -f "$$work/failed"; \
				{ "$$work/fuzz.test" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
					-test.fuzzminimizetime 20x -test.fuzzcachedir "$$work/inputs" -test.timeout 30m || touch "$$work/failed"; } 2>&1 | \
					tee "$$work/output"; \
				[ -e "$$work/failed" ] || break; \
				[ $$try -lt 3 ] && grep -q '^ *context deadline exceeded$$' "$$work/output" && \
					! grep -q 'Failing input written' "$$work/output" || exit 1; \
			done; \
		done; \
	done

examples: bin/heartbeat postgres-install
	$(RUNS) mirror go test -C mirror -json -vet=off -timeout 30m ./...
	$(RUNS) "examples/operator" go test -C examples/operator -json -vet=off -timeout 20m ./...
	$(RUNS) "examples/stream" go test -C examples/stream -json -vet=off -timeout 20m ./...

# The status page in a real browser, Debian's Chromium, which is installed where it is missing. Its
# pictures in docs come from: BROWSER_PICTURES=$(CURDIR)/docs make browser
browser: bin/heartbeat browser-install
	$(RUNS) browser go test -C e2e/browser -json -count=1 -vet=off -timeout 20m ./...

browser-install:
	@command -v chromium >/dev/null || apt-get install -y --no-install-recommends chromium || \
		{ apt-get update && apt-get install -y --no-install-recommends chromium; } || \
		echo "CHROMIUM CANNOT BE INSTALLED: THE STATUS PAGE IS NOT TRIED IN A BROWSER."

# PostgreSQL for the tests of sqlsink and mirror, Debian's, which is installed where it is missing.
# The tests start servers of their own: the one that Debian makes is told not to start.
postgres-install:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
		{ $(POSTGRES_APT) || { apt-get update && $(POSTGRES_APT); }; } || \
		echo "POSTGRESQL CANNOT BE INSTALLED: THE MIRROR IS NOT TRIED WITH IT."

POSTGRES_APT := env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y --no-install-recommends postgresql pgbouncer

# controller-runtime's own tests of caches, those of its newest version and of the oldest that
# works, with the cache of this library, in about 3 minutes.
# Builds kube-apiserver and etcd first, as e2e does. The go command does not know that the tests
# that this test builds have changed: hence -count=1.
controllerruntime: bin/heartbeat
	$(RACE) $(RUNS) controllerruntime go test -C e2e -json -count=1 -vet=off -timeout 30m ./controllerruntime

# A sample of e2e: each test in some of its settings, and two trials. Builds kube-apiserver
# and etcd from their modules first, about 3 minutes when nothing is cached. They are those of the
# newest version of Kubernetes in e2e/servers, here and wherever they run. KUBERNETES=1.35 has
# another one.
e2e-short: bin/heartbeat
	$(RUNS) e2e-short go test -C e2e -json -short -vet=off -timeout 30m .

# All of it, for .ci/run: each test in all settings, all trials, and the tests of the
# clusters themselves. Proof has replay, which the race detector would slow down most.
e2e: bin/heartbeat postgres-install
	$(RACE) $(RUNS) e2e go test -C e2e -json -vet=off -timeout 60m $$(go list -C e2e ./... | grep -vE '/(controllerruntime|replay)$$')

# The sample of e2e, controller-runtime's own tests of caches, and all trials with the tests of
# feature gates, beside the kube-apiserver and the etcd of each version; the sample and the trials
# beside the newest one over kine. It prints a table, and docs/proof.md has one. It goes on after a
# failure, and fails in the end.
SERVERS ?= 1.34 1.35 1.36 1.37
servers: bin/heartbeat
	@failed=; table=bin/servers.md; \
	each() { \
		name="$$KUBERNETES $$1"; shift; \
		$(RUNS) -table $$table "$$name" go test -C e2e -json -count=1 -vet=off -timeout 60m "$$@" || failed=1; \
	}; \
	printf '| | passed | failed | skipped | time |\n|---|--:|--:|--:|--:|\n' >$$table; \
	for version in $(SERVERS); do \
		export KUBERNETES=$$version; \
		each sample -short -skip '^Test(Trial|FeatureGates)' .; \
		each controller-runtime ./controllerruntime; \
		each trials -run '^Test(Trial|FeatureGates)' .; \
	done; \
	unset KUBERNETES; export STORE=kine; \
	each "over kine: sample" -short -skip '^Test(Trial|FeatureGates)' .; \
	each "over kine: trials" -run '^Test(Trial|FeatureGates)' .; \
	unset STORE; \
	each "aggregated" -run 'Aggregated|MetricsServer' .; \
	cat $$table; [ -z "$$failed" ]

# The alert rules and the dashboard in docs, with Prometheus' own engine, in half a minute. Building
# it takes as long.
dashboards: bin/heartbeat
	$(RUNS) dashboards go test -C e2e/dashboards -json -vet=off -timeout 20m ./...

# internal/leaf/typedjson with the Go types of custom resources that people run, in seconds. Building them
# takes a minute.
crdtypes: bin/heartbeat
	$(RUNS) crdtypes go test -C e2e/crdtypes -json -vet=off -timeout 20m ./...

demo:
	go run -C mirror . --demo

# Beside client-go and a plain GET, against a simulated server of 100,000 and of a million pods;
# then typed factories, many clusters, half of a set, the ways to read a set from a kube-apiserver
# that compresses watch-lists and from one that does not, and caches that can be read: more than an
# hour. Writes the tables of docs/performance.md and docs/performance-more.md, and tables
# of docs/which-informer.md.
bench:
	cd bench && go run . all
	cd bench && go run . peaks
	cd bench && go run . clusters
	cd bench && go run . fleet
	cd bench && go run . shard
	cd bench && go run . handlers
	cd bench && go run . ways
	cd bench && KUBERNETES=1.36 go run . ways
	cd bench && go run . readcache -million 1000000

# The same with 10,000 pods, once, in about a minute. Writes nothing.
bench-quick:
	cd bench && go run . all -quick

# The cold start beside client-go, with the Go and the client-go of make next, at the sizes of make
# bench. Writes nothing: its tables are for those who decide what make bench is to measure.
bench-next:
	cd bench && $(NEXT_BENCH) go run . all -scenarios coldstart -docs ""

bench-test: bin/heartbeat
	$(RUNS) bench-test go test -C bench -json -timeout 30m ./...
