package controllerruntime_test

import (
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rvinformer/informer/statuspage"
)

var _, _ healthz.Checker = statuspage.New().Ready, statuspage.New().Live

// addChecks is a block of docs/monitoring.md.
func addChecks(mgr manager.Manager, page *statuspage.Page) error {
	if err := mgr.AddReadyzCheck("informers", page.Ready); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("informers", page.Live); err != nil {
		return err
	}
	return nil
}

var _ = addChecks
