// Package e2e holds tests of the informer against a real kube-apiserver and a
// real etcd, which package cluster runs. Each test folds what the handler was
// told into a map, and ends by comparing that map with what the server has.
//
// The tests whose names begin with TestTrial do their worst to the servers, or to the
// network, while objects come and go. There, package truth records what was written
// from etcd itself, and an oracle for each informer judges all that it was told.
//
//	go test -race ./...
//
// builds both servers first, which takes minutes once and seconds afterwards. They are those of the
// newest version of Kubernetes in e2e/servers; with KUBERNETES=1.35 in the environment, of that one.
// With STORE=kine, the API server keeps its objects in kine over SQLite, as k3s does, and not in etcd.
package e2e
