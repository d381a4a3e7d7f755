package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/rvinformer/informer/sqlsink/pgtest"
	"github.com/stretchr/testify/require"
)

// A PostgreSQL that is down when mirror starts is waited for: the log and the status page say so,
// and the process is live but not ready.
func TestPostgresThatIsDownAtTheStart(t *testing.T) {
	server := pgtest.Start(t)
	here := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	clusters := filepath.Join(t.TempDir(), "clusters")
	require.NoError(t, os.Mkdir(clusters, 0o700))
	require.NoError(t, os.Rename(mirrortest.Kubeconfig(t, here.Endpoint()), filepath.Join(clusters, "here")))
	for name, tt := range map[string]struct {
		args   []string
		synced string
	}{
		"contexts": {[]string{"--kubeconfig", mirrortest.Kubeconfig(t, here.Endpoint()), "--resources=pods"}, "here pods: synced in "},
		"clusters": {[]string{"--clusters", clusters, "--resources=pods"}, "here: synced in "},
	} {
		t.Run(name, func(t *testing.T) {
			address := server.NewDatabase(t)
			server.Kill(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			to := mirrortest.NewOutput()
			waits, synced, ended := make(chan struct{}), make(chan struct{}), make(chan int, 1)
			to.When(mirrortest.Has("tried again in "), func() { close(waits) })
			go func() { ended <- run(ctx, append(tt.args, "--database", address, "--listen=localhost:0"), to.Screen) }()
			select {
			case <-waits:
			case code := <-ended:
				require.FailNow(t, "it has ended", "%d: %s", code, to)
			}
			link := statusLink.FindStringSubmatch(to.String())
			require.Len(t, link, 2, to)
			code, body := get(t, link[1]+"readyz?verbose")
			require.Equal(t, http.StatusInternalServerError, code)
			require.Regexp(t, `\[-\]informer/\S*database\S* failed: not synced: Failing: .*failed to connect`, body)
			code, body = get(t, link[1]+"livez?verbose")
			require.Equal(t, http.StatusOK, code, body)

			to.When(mirrortest.Has(tt.synced), func() { close(synced) })
			server.Restart(t)
			select {
			case <-synced:
			case <-time.After(soon):
				require.FailNow(t, "it does not go on", to)
			}
			code, body = get(t, link[1]+"readyz?verbose")
			require.Equal(t, http.StatusOK, code, body)
			require.NotContains(t, body, "database")
			cancel()
			require.Equal(t, exitOK, <-ended, to)
			require.Regexp(t, `^mirror: database postgres://\S+: failed to connect to .*; tried again in \d+ms, and until it can be opened\n`+
				`mirror: database \S+: open, after \S+\n$`, to.Messages())
		})
	}
}

// With --once, a closed port is believed after some tries. A stop ends the waiting at once.
func TestPostgresThatStaysDown(t *testing.T) {
	closed := "postgres://me:secret@" + mirrortest.Unreachable(t).Host[len("http://"):] + "/none?sslmode=disable"
	args := []string{"--kubeconfig", mirrortest.Kubeconfig(t, clusters.Endpoint{Name: "here", Client: mirrortest.Unreachable(t)}), "--database", closed}
	to := mirrortest.NewOutput()
	require.Equal(t, exitFailed, run(t.Context(), append(args, "--once"), to.Screen), to)
	require.Regexp(t, `(?m)^mirror: database .*connection refused$`, to.Messages())
	require.NotContains(t, to.String(), "secret")

	ctx, cancel := context.WithCancel(t.Context())
	to = mirrortest.NewOutput()
	to.When(mirrortest.Has("tried again in "), cancel)
	require.Equal(t, exitFailed, run(ctx, args, to.Screen), to)
	require.Regexp(t, `mirror: stopped before the database was open\n$`, to.Messages())
}

// What the server says of the account, its password or the name of the database is final, and told.
func TestPostgresThatRefuses(t *testing.T) {
	rules, err := os.CreateTemp("", "pg_hba-*.conf") // the server's account cannot read what is in t.TempDir
	require.NoError(t, err)
	defer os.Remove(rules.Name())
	require.NoError(t, rules.Chmod(0o644))
	_, err = rules.WriteString("local all postgres trust\nlocal all all scram-sha-256\n")
	require.NoError(t, err)
	require.NoError(t, rules.Close())
	server := pgtest.Start(t, "hba_file="+rules.Name())
	server.Query(t, "postgres", "CREATE ROLE me LOGIN PASSWORD 'right'; CREATE ROLE you LOGIN PASSWORD 'right'; CREATE DATABASE me")
	kubeconfig := mirrortest.Kubeconfig(t, clusters.Endpoint{Name: "here", Client: mirrortest.Unreachable(t)})
	as := func(user string) string {
		return regexp.MustCompile(`user=\w+`).ReplaceAllString(server.URL("me"), "user="+user)
	}
	for address, want := range map[string]string{
		as("me") + "&password=wrong":  `password authentication failed for user "me"`,
		server.URL("none"):            `database "none" does not exist`,
		as("you") + "&password=right": `cannot create its tables: .*permission denied`,
	} {
		to := mirrortest.NewOutput()
		require.Equal(t, exitFailed, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--database", address}, to.Screen), to)
		require.Regexp(t, want, to.Messages())
		require.NotContains(t, to.String(), "tried again")
		require.NotContains(t, to.String(), "wrong")
	}
}

func TestFinalErrorsOfPostgres(t *testing.T) {
	for _, tt := range []struct {
		err   error
		final bool
	}{
		{errors.New("no route"), false},
		{&sqlsink.UnusableError{}, true},
		{&pgconn.PgError{Code: "28P01"}, true},  // a wrong password
		{&pgconn.PgError{Code: "28000"}, true},  // no such role
		{&pgconn.PgError{Code: "3D000"}, true},  // no such database
		{&pgconn.PgError{Code: "42501"}, true},  // no right
		{&pgconn.PgError{Code: "57P03"}, false}, // it starts
		{&pgconn.PgError{Code: "57P01"}, false}, // it ends
		{&pgconn.PgError{Code: "53300"}, false}, // too many clients
		{&pgconn.PgError{Code: "25006"}, false}, // a standby
		{&pgconn.PgError{Code: "XX000"}, false},
	} {
		require.Equal(t, tt.final, isFinal(fmt.Errorf("database: %w", tt.err)), tt.err)
	}
}
