// Command kube-apiserver is the Kubernetes API server, built from its own
// modules so that the e2e tests need no downloaded binary.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
