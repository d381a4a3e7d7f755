// Command sample-apiserver is the aggregated API server that Kubernetes has as an example, built from
// its own module so that the e2e tests need no downloaded binary.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"k8s.io/sample-apiserver/pkg/cmd/server"
)

func main() {
	options := server.NewWardleServerOptions(os.Stdout, os.Stderr)
	os.Exit(cli.Run(server.NewCommandStartWardleServer(genericapiserver.SetupSignalContext(), options, false)))
}
