# make test is the one command that passes all tests; .ci/run calls it.

# The modules with tests, each with its own dependencies.
MODULES := . examples/mirror e2e bench
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: test lint unit examples e2e demo bench bench-quick bench-test

test: lint unit examples e2e bench-test

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

examples:
	cd examples/mirror && go test -race -timeout 15m ./...

# Builds kube-apiserver and etcd from their modules first, about 3 minutes when
# nothing is cached.
e2e:
	cd e2e && go test -race -timeout 30m ./...

demo:
	go run -C examples/mirror . --demo

# Beside client-go and a plain GET, against a simulated server of 100,000 and of a
# million pods, about 30 minutes. Writes docs/performance.md and docs/bench-*.svg.
bench:
	cd bench && go run . all

# The same with 10,000 pods, once, in about a minute. Writes nothing.
bench-quick:
	cd bench && go run . all -quick

bench-test:
	cd bench && go test -timeout 15m ./...
