// Package e2e holds tests of the informer against a real kube-apiserver and a
// real etcd, which package cluster runs. Each test folds what the handler was
// told into a map, and ends by comparing that map with what the server has.
//
//	go test -race ./...
//
// builds both servers first, which takes minutes once and seconds afterwards.
package e2e
