# make test is the one command that passes all tests; .ci/run calls it.

# The modules with tests, each with its own dependencies.
MODULES := . examples/mirror e2e
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: test lint unit examples e2e demo

test: lint unit examples e2e

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
