// Command mirror copies the objects of any number of Kubernetes clusters into one SQLite file or a
// PostgreSQL database, in little memory, and keeps it up to date.
//
// A batch is acknowledged when its transaction is committed, so an informer knows what the database
// has, and nothing else. Objects and their resource versions are in the same rows, and a start
// seeds the informers with these resource versions: it is told what differs. The informers keep
// their checkpoints in the database too, and go on from there without a list where they can.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/rvinformer/informer/mirror/internal/commandline"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1 // something is not synced, or not written
	exitMisused = 2
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal kills

	to := display.NewScreen(os.Stdout, os.Stderr)
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(to)))) // and client-go's logs
	os.Exit(run(ctx, os.Args[1:], to))
}

// run is the program without its process: it ends with the context, and returns the exit code.
func run(ctx context.Context, args []string, to *display.Screen) int {
	o, err := commandline.Parse(args, to.Out())
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err != nil:
		to.Say(err.Error() + " (--help shows the usage)")
		return exitMisused
	}
	ok, err := mirror(ctx, o, to)
	if err != nil {
		to.Say(err.Error())
	}
	if err != nil || !ok {
		return exitFailed
	}
	return exitOK
}
