module github.com/rvinformer/informer/e2e/servers/kine

go 1.26.0

require github.com/k3s-io/kine v0.17.5
