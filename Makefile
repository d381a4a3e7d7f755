# make test is the one command that passes all tests; .ci/run calls it.

# The modules with tests, each with its own dependencies.
MODULES := . examples/mirror e2e bench
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# For how long each fuzz target runs.
FUZZTIME ?= 3s

.PHONY: test lint unit proof torture mutants fuzz examples e2e demo bench bench-quick bench-test

test: lint unit proof fuzz examples e2e bench-test

# Formatting, vet and staticcheck, in every module.
lint:
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	@for module in $(MODULES); do \
		echo "vet and staticcheck in $$module"; \
		(cd $$module && go vet ./... && go run $(STATICCHECK) ./...) || exit 1; \
	done

# wirepoison overwrites lent bytes when their loan ends.
unit:
	go test -race -tags wirepoison -timeout 15m ./...

# 200 random scripts of a simulated day each, the same in each run, judged by the oracle,
# in about two minutes. Unit plays 20 of them under the race detector.
proof:
	INFORMER_TORTURE=200 go test -count=1 -tags wirepoison -timeout 20m -v -run TestRandomScripts ./informertest/script

# As many scripts as you like, others in each run, and random restarts as well.
TORTURE ?= 10000
TORTURE_FROM ?= $(shell date +%s)
torture:
	INFORMER_TORTURE=$(TORTURE) INFORMER_TORTURE_FROM=$(TORTURE_FROM) \
		go test -count=1 -tags wirepoison -timeout 0 -v -run 'Torture|RandomScripts' . ./informertest/script

# A sample of the one-line changes of the core packages, each with the tests that should
# notice it: about a minute for four of them. A change that no test notices fails it,
# unless internal/mutants/survivors.txt explains why.
MUTANTS ?= 60
MUTANTS_SEED ?= $(shell date +%s)
# Packages, as internal/deltaqueue; all of the core if empty.
MUTANTS_OF ?=
mutants:
	nice -n 10 go run ./internal/mutants -n $(MUTANTS) -seed $(MUTANTS_SEED) $(MUTANTS_OF)

# Every fuzz target of every package, one after the other, in about two minutes. Each
# begins with the inputs in testdata/fuzz, which unit runs as well, and not with what
# former runs have found: to try that again would take all of its time. An input that
# fails is written to testdata/fuzz, to be committed with what mends it.
fuzz:
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	for dir in $$(git grep -lE --untracked '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u); do \
		cd "$(CURDIR)/$$dir"; \
		go test -c -fuzz . -o "$$work/fuzz.test" .; \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' ./*_test.go); do \
			echo "fuzz $$dir $$target"; \
			"$$work/fuzz.test" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzminimizetime 20x -test.fuzzcachedir "$$work/inputs" -test.timeout 30m; \
		done; \
	done

examples:
	cd examples/mirror && go test -race -timeout 15m ./...

# Builds kube-apiserver and etcd from their modules first, about 3 minutes when
# nothing is cached. Client-go races with itself where it loads a new certificate.
e2e:
	cd e2e && go test -race -timeout 30m ./...
	cd e2e && go test -run RenewedCertificate .

demo:
	go run -C examples/mirror . --demo

# Beside client-go and a plain GET, against a simulated server of 100,000 and of a
# million pods; then typed factories, and many clusters: about an hour. Writes docs/performance.md and docs/bench-*.svg.
bench:
	cd bench && go run . all
	cd bench && go run . peaks
	cd bench && go run . clusters

# The same with 10,000 pods, once, in about a minute. Writes nothing.
bench-quick:
	cd bench && go run . all -quick

bench-test:
	cd bench && go test -timeout 15m ./...
