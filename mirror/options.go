package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"
)

const usage = `mirror copies the objects of any number of Kubernetes clusters into one SQLite file or a PostgreSQL database, and keeps it
up to date.

A second start writes only what has changed meanwhile. Without --once it lists nothing for that: the database says up to
where it is complete, and each server is asked what has happened since. Where a server does not remember, everything is
listed. Beside the SQLite file there may be its -wal and -shm, which are part of it, and an empty .lock.

Usage:
  mirror [--kubeconfig FILE] [--context NAME]... [--resources LIST] [--db FILE | --database ADDRESS] [--once]
  mirror --clusters DIRECTORY [--share NAMESPACE/NAME --database ADDRESS] [--resources LIST]
  mirror --demo [--once]

Flags:
`

// options is what the command line says.
type options struct {
	kubeconfig        string
	contexts          []string
	resources         []string
	db                string          // a SQLite file; empty = defaultDatabase, or a temporary file with --demo
	postgres          *pgxpool.Config // instead of db; nil = none
	once              bool
	beginAnew         bool
	timeout           time.Duration
	keepManagedFields bool
	pageSize          int64
	demo              bool
	demoObjects       int
	listen            string // empty = nowhere

	clusters        string // a directory with a kubeconfig for each cluster; empty = none
	share           string // NAMESPACE/NAME of the Leases; empty = this mirror does everything
	shareKubeconfig string // where the Leases are; empty = in the cluster that mirror runs in
	identity        string
	leaseDuration   time.Duration
	shards          int
}

// isFleet reports whether clusters come and go, or replicas share them.
func (o options) isFleet() bool { return o.clusters != "" || o.share != "" }

const defaultDatabase = "mirror.db"

// parseOptions reads the arguments. pflag.ErrHelp means that the usage was asked for, and printed.
func parseOptions(args []string, out io.Writer) (options, error) {
	var o options
	var database string
	flags := pflag.NewFlagSet("mirror", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(out)
	flags.Usage = func() { fmt.Fprint(out, usage+flags.FlagUsages()) }
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig `file` (default $KUBECONFIG, then ~/.kube/config)")
	flags.StringArrayVar(&o.contexts, "context", nil, "a `context` of the kubeconfig, that is a cluster to mirror; repeatable (default the current one)")
	flags.StringSliceVar(&o.resources, "resources", nil, "resources to mirror, like pods,deployments.apps,widgets.v1.example.com; repeatable (default all that can be listed and watched)")
	flags.StringVar(&o.db, "db", "", "the SQLite `file` (default "+defaultDatabase+"; with --demo a temporary one)")
	flags.StringVar(&database, "database", "", "instead of --db: the `address` of a database, like postgres://user@host:5432/name (the password from $PGPASSWORD or ~/.pgpass), or sqlite:FILE")
	flags.BoolVar(&o.beginAnew, "begin-anew", false, "replace what the database has of another cluster under the same name; without it, mirror leaves that as it is, and waits")
	flags.BoolVar(&o.once, "once", false, "end after the initial sync with a summary; exit code 1 if anything could not be synced")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "with --once: how long a resource may make no progress before it is given up")
	flags.BoolVar(&o.keepManagedFields, "keep-managed-fields", false, "keep metadata.managedFields in the stored objects")
	flags.Int64Var(&o.pageSize, "page-size", 500, "objects in one response of a list")
	flags.BoolVar(&o.demo, "demo", false, "mirror three simulated clusters that run inside this process")
	flags.IntVar(&o.demoObjects, "demo-objects", 30_000, "with --demo: how many objects the clusters have in all")
	flags.StringVar(&o.listen, "listen", "", "the `address` to serve a status page, metrics and health checks on, like :8080 (default nowhere; with --demo a free port of this machine)")
	flags.StringVar(&o.clusters, "clusters", "", "a `directory` with a kubeconfig for each cluster, in a file with the cluster's name; files come and go while mirror runs")
	flags.StringVar(&o.share, "share", "", "share the work with other replicas by Leases, `NAMESPACE/NAME`; needs --database with a PostgreSQL")
	flags.StringVar(&o.shareKubeconfig, "share-kubeconfig", "", "with --share: the kubeconfig `file` of the cluster with the Leases (default the cluster that mirror runs in)")
	flags.StringVar(&o.identity, "identity", defaultIdentity(), "with --share: the `name` of this replica (default $POD_NAME, then the host's name)")
	flags.DurationVar(&o.leaseDuration, "lease-duration", 15*time.Second, "with --share: how long others wait for a replica that says nothing, in whole seconds; it must be the same for all")
	flags.IntVar(&o.shards, "shards", 1, "with --share: into how many parts each cluster is divided, by namespaces; a replica with another number than the others waits until they have ended")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.demo && !flags.Changed("listen") {
		o.listen = "localhost:0"
	}
	switch {
	case isPostgresURL(o.db):
		return o, errDatabaseFlag
	case slices.ContainsFunc(flags.Args(), mayHavePassword):
		return o, errUnknownArgument
	case flags.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q", strings.Join(flags.Args(), " "))
	case o.timeout <= 0:
		return o, fmt.Errorf("--timeout %s: it must be positive", o.timeout)
	case o.pageSize <= 0:
		return o, fmt.Errorf("--page-size %d: it must be positive", o.pageSize)
	case o.demo && (o.kubeconfig != "" || len(o.contexts) > 0):
		return o, errors.New("--demo brings its own clusters: --kubeconfig and --context do not go with it")
	case o.demo && o.demoObjects < 1:
		return o, fmt.Errorf("--demo-objects %d: it must be positive", o.demoObjects)
	case flags.Changed("database") && o.db != "":
		return o, errors.New("--db and --database: there is one database")
	}
	if flags.Changed("database") {
		var err error
		if o.postgres, o.db, err = parseAddress(database); err != nil {
			return o, err
		}
	}
	if o.db == "" && o.postgres == nil && !o.demo {
		o.db = defaultDatabase
	}
	return o, o.checkFleet(flags)
}

// checkFleet says what is wrong with the flags of fleets.
func (o options) checkFleet(flags *pflag.FlagSet) error {
	if o.share == "" {
		for _, name := range []string{"share-kubeconfig", "identity", "lease-duration", "shards"} {
			if flags.Changed(name) {
				return fmt.Errorf("--%s goes with --share", name)
			}
		}
	}
	namespace, name, found := strings.Cut(o.share, "/")
	switch {
	case o.isFleet() && o.once:
		return errors.New("--once does not go with --clusters and --share, which have no end")
	case o.isFleet() && o.demo:
		return errors.New("--demo brings its own clusters: --clusters and --share do not go with it")
	case o.share != "" && (!found || namespace == "" || name == ""):
		return fmt.Errorf("--share %s: it must be NAMESPACE/NAME", o.share)
	case o.share != "" && o.postgres == nil:
		return errors.New("--share needs --database with a PostgreSQL: replicas cannot share a SQLite file")
	case o.shards < 1:
		return fmt.Errorf("--shards %d: it must be positive", o.shards)
	}
	return nil
}

// open opens the database.
func (o options) open(ctx context.Context) (database, error) {
	switch {
	case o.postgres == nil:
	case o.share == "":
		return openPostgres(ctx, o.postgres, 0)
	default:
		return openPostgres(ctx, o.postgres, o.shards)
	}
	return openSQLite(ctx, o.db)
}

// prune lists the fields that are dropped while an object is read, before it takes memory.
func (o options) prune() []string {
	if o.keepManagedFields {
		return nil
	}
	return []string{"metadata.managedFields"}
}
