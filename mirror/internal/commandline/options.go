// Package commandline reads the flags of mirror.
package commandline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer/mirror/internal/follow"
	"github.com/rvinformer/informer/mirror/internal/share"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/spf13/pflag"
)

const usage = `mirror copies the objects of any number of Kubernetes clusters into one SQLite file or a PostgreSQL database, and keeps it
up to date.

A second start writes only what has changed meanwhile. Without --once it lists nothing for that: the database says up to
where it is complete, and each server is asked what has happened since. Where a server does not remember, everything is
listed. Beside the SQLite file there may be its -wal and -shm, which are part of it, and an empty .lock.

Usage:
  mirror [--kubeconfig FILE] [--context NAME]... [--resources LIST] [--db FILE | --database ADDRESS] [--once]
  mirror --clusters DIRECTORY [--once] [--resources LIST] [--db FILE | --database ADDRESS]
  mirror --clusters DIRECTORY [--share NAMESPACE/NAME --database ADDRESS] [--resources LIST]
  mirror --demo [--once]

Flags:
`

// Options are what the command line says.
type Options struct {
	Kubeconfig  string
	Contexts    []string
	Clusters    string        // a directory with a kubeconfig for each cluster; empty = none
	Database    string        // its address, for sqlsink; empty = a temporary file, with Demo alone
	Follow      follow.Config // without Database and Say
	Share       share.Options // without Leases, this mirror does everything
	Once        bool
	Timeout     time.Duration
	Demo        bool
	DemoObjects int
	Listen      string // empty = nowhere
}

// IsFleet reports whether clusters come and go, or replicas share them.
func (o Options) IsFleet() bool { return o.Clusters != "" && !o.Once || o.IsShared() }

// IsShared reports whether replicas share the work.
func (o Options) IsShared() bool { return o.Share.Leases != "" }

const (
	// DefaultFile is the SQLite file where no database is named.
	DefaultFile = "mirror.db"
	// SQLite is before the path of a file in an address.
	SQLite = "sqlite:"
)

// Parse reads the arguments. pflag.ErrHelp means that the usage was asked for, and printed.
func Parse(args []string, out io.Writer) (Options, error) {
	var o Options
	var file string
	var keepManagedFields bool
	flags := pflag.NewFlagSet("mirror", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(out)
	flags.Usage = func() { fmt.Fprint(out, usage+flags.FlagUsages()) }
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "the kubeconfig `file` (default $KUBECONFIG, then ~/.kube/config)")
	flags.StringArrayVar(&o.Contexts, "context", nil, "a `context` of the kubeconfig, that is a cluster to mirror; repeatable (default the current one)")
	flags.StringSliceVar(&o.Follow.Resources, "resources", nil, "resources to mirror, like pods,deployments.apps,widgets.v1.example.com,*.example.com; repeatable (default all that can be listed and watched, but secrets)")
	flags.StringVar(&file, "db", "", "the SQLite `file` (default "+DefaultFile+"; with --demo a temporary one)")
	flags.StringVar(&o.Database, "database", "", "instead of --db: the `address` of a database, like postgres://user@host:5432/name (the password from $PGPASSWORD or ~/.pgpass), or sqlite:FILE")
	flags.BoolVar(&o.Follow.BeginAnew, "begin-anew", false, "replace what the database has of another cluster under the same name; without it, mirror leaves that as it is, and waits")
	flags.BoolVar(&o.Once, "once", false, "end after the initial sync with a summary; exit code 1 if anything could not be synced")
	flags.DurationVar(&o.Timeout, "timeout", time.Minute, "with --once: how long a resource may make no progress before it is given up")
	flags.BoolVar(&keepManagedFields, "keep-managed-fields", false, "keep metadata.managedFields in the stored objects")
	flags.Int64Var(&o.Follow.PageSize, "page-size", 500, "objects in one response of a list")
	flags.BoolVar(&o.Demo, "demo", false, "mirror three simulated clusters that run inside this process")
	flags.IntVar(&o.DemoObjects, "demo-objects", 30_000, "with --demo: how many objects the clusters have in all")
	flags.StringVar(&o.Listen, "listen", "", "the `address` to serve a status page, metrics and health checks on, like :8080 (default nowhere; with --demo a free port of this machine)")
	flags.StringVar(&o.Clusters, "clusters", "", "a `directory` with a kubeconfig for each cluster, in a file with the cluster's name; files come and go while mirror runs, but with --once")
	flags.StringVar(&o.Share.Leases, "share", "", "share the work with other replicas by Leases, `NAMESPACE/NAME`; needs --database with a PostgreSQL")
	flags.StringVar(&o.Share.Kubeconfig, "share-kubeconfig", "", "with --share: the kubeconfig `file` of the cluster with the Leases (default the cluster that mirror runs in)")
	flags.StringVar(&o.Share.Identity, "identity", os.Getenv("POD_NAME"), "with --share: the `name` of this replica (default $POD_NAME, then the host's name)")
	flags.DurationVar(&o.Share.LeaseDuration, "lease-duration", 15*time.Second, "with --share: how long others wait for a replica that says nothing, in whole seconds; it must be the same for all")
	flags.IntVar(&o.Follow.Shards, "shards", 1, "with --share: into how many parts each cluster is divided, by namespaces; a replica with another number than the others waits until they have ended")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.Follow.OmitSecrets = len(o.Follow.Resources) == 0 && !o.Demo // those of the demo are made up
	if o.Demo && !flags.Changed("listen") {
		o.Listen = "localhost:0"
	}
	if !flags.Changed("database") && (file != "" || !o.Demo) {
		o.Database = SQLite + cmp.Or(file, DefaultFile)
	}
	if !keepManagedFields { // they are dropped while an object is read, before they take memory
		o.Follow.Prune = []string{"metadata.managedFields"}
	}
	if o.Once {
		o.Follow.Relist, o.Follow.Patience = true, follow.Patience(o.Timeout)
	}
	o.Follow.BeginAnew = o.Follow.BeginAnew || o.Demo // the clusters of each demo are new
	return o, o.check(flags, file)
}

// check says what is wrong with the flags.
func (o Options) check(flags *pflag.FlagSet, file string) error {
	_, address := sqlsink.Name(o.Database)
	namespace, name, _ := strings.Cut(o.Share.Leases, "/")
	switch {
	case mayHavePassword(strings.TrimPrefix(file, SQLite)):
		return errors.New("--db: it is the file of a SQLite database: the address of a PostgreSQL database goes to --database (it is not repeated here, for it may have a password in it; " +
			"write ./ before the name of a file that has = in it)")
	case slices.ContainsFunc(flags.Args(), mayHavePassword):
		return errors.New("unknown argument: the address of a database goes to --database (it is not repeated here, for it may have a password in it)")
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q", strings.Join(flags.Args(), " "))
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout %s: it must be positive", o.Timeout)
	case o.Follow.PageSize <= 0:
		return fmt.Errorf("--page-size %d: it must be positive", o.Follow.PageSize)
	case o.Demo && (o.Kubeconfig != "" || len(o.Contexts) > 0):
		return errors.New("--demo brings its own clusters: --kubeconfig and --context do not go with it")
	case o.Demo && o.DemoObjects < 1:
		return fmt.Errorf("--demo-objects %d: it must be positive", o.DemoObjects)
	case flags.Changed("database") && file != "":
		return errors.New("--db and --database: there is one database")
	case flags.Changed("database") && address != nil:
		return fmt.Errorf("--database: %w", address)
	case o.Database != "" && address != nil:
		return fmt.Errorf("--db: %w", address)
	case o.IsShared() && o.Once:
		return errors.New("--once does not go with --share, which has no end")
	case (o.Clusters != "" || o.IsShared()) && o.Demo:
		return errors.New("--demo brings its own clusters: --clusters and --share do not go with it")
	case o.IsShared() && (namespace == "" || name == ""):
		return fmt.Errorf("--share %s: it must be NAMESPACE/NAME", o.Share.Leases)
	case o.IsShared() && strings.HasPrefix(o.Database, SQLite):
		return errors.New("--share needs --database with a PostgreSQL: replicas cannot share a SQLite file")
	case o.Follow.Shards < 1:
		return fmt.Errorf("--shards %d: it must be positive", o.Follow.Shards)
	}
	for _, name := range []string{"share-kubeconfig", "identity", "lease-duration", "shards"} {
		if !o.IsShared() && flags.Changed(name) {
			return fmt.Errorf("--%s goes with --share", name)
		}
	}
	return nil
}

// mayHavePassword reports whether an argument may be the address of a database, or a part of one.
func mayHavePassword(argument string) bool {
	keyword, _, found := strings.Cut(argument, "=")
	return strings.Contains(argument, "://") || found && !strings.ContainsAny(strings.TrimSpace(keyword), ":/@. ")
}
