package controller

import "context"

// TestControllerRun runs a Controller of r, for a test. The returned function stops it and
// waits until its Run has returned; it may be called more than once, and from several
// goroutines. Several controllers of one Resource may run at a time, and each has its
// calls. It panics if r is nil.
func TestControllerRun(r Resource) func() {
	c := &Controller{Resource: r}
	c.check()
	ctx, stop := context.WithCancel(context.Background())
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		c.RunWithContext(ctx)
	}()
	return func() {
		stop()
		<-returned
	}
}
