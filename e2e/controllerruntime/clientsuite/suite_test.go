//go:build theirs

// Package clientsuite is where tests of controller-runtime's package client are run: see the
// directory above.
package client_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/e2e/cluster"
)

// newCache is called where the tests call cache.New.
var newCache cache.NewCacheFunc = controllerruntime.NewCache

// cfg is that of the server. The tests use it by this name.
var cfg *rest.Config

var server *cluster.Cluster

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute) // a second is too short for a slow machine
	RunSpecs(t, "controller-runtime's tests of package client")
}

var _ = BeforeSuite(func(ctx context.Context) {
	log.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	binaries, err := cluster.Build(ctx, "")
	Expect(err).NotTo(HaveOccurred())
	// The servers outlive the context of this function.
	server, err = cluster.Start(context.WithoutCancel(ctx), cluster.Options{Binaries: binaries})
	Expect(err).NotTo(HaveOccurred())
	cfg = server.Config()
})

var _ = AfterSuite(func() {
	Expect(server.Close()).To(Succeed())
})
