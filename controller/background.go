package controller

import (
	"context"
	"fmt"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// defaultStopTimeout is the default of Controller.StopTimeout: after that time, Kubernetes
// kills a pod that is to stop.
const defaultStopTimeout = 30 * time.Second

// background is a Backgrounder that runs; nil if the Resource is none.
type background struct {
	of       interface{}
	returned chan struct{}
}

// background starts the Resource's Run if it has one, until ctx ends.
func (c *Controller) background(ctx context.Context) *background {
	backgrounder, ok := c.Resource.(Backgrounder)
	if !ok {
		return nil
	}
	b := &background{of: backgrounder, returned: make(chan struct{})}
	go func() {
		defer close(b.returned)
		defer utilruntime.HandleCrashWithContext(ctx)
		backgrounder.Run(ctx.Done())
	}()
	return b
}

// wait waits until it has returned, or for the timeout.
func (b *background) wait(timeout time.Duration) error {
	if b == nil {
		return nil
	}
	if timeout < 0 {
		<-b.returned
		return nil
	}
	if timeout == 0 {
		timeout = defaultStopTimeout
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-b.returned:
		return nil
	case <-timer.C:
		return fmt.Errorf("the Backgrounder %T has not returned %v after it was told to stop", b.of, timeout)
	}
}
