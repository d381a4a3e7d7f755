package sqlsink_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
)

// pooled runs a PgBouncer before the server of an address until the test ends, and returns its address.
func pooled(t *testing.T, address, settings string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("NOT RUN: PgBouncer is not installed: make postgres-install")
	}
	folder, err := os.MkdirTemp("", "pooler-") // short, for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	server, err := url.Parse(address)
	require.NoError(t, err)
	config := filepath.Join(folder, "ini")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "users"), []byte(`"postgres" ""`), 0o644))
	require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf(`[databases]
* = host=%s
[pgbouncer]
listen_port = 6432
unix_socket_dir = %s
auth_type = trust
auth_file = %s/users
%s
`, server.Query().Get("host"), folder, folder, settings)), 0o644))
	arguments := []string{config}
	if os.Geteuid() == 0 { // it refuses to run as root
		account, err := user.Lookup("postgres")
		require.NoError(t, err)
		uid, err := strconv.Atoi(account.Uid)
		require.NoError(t, err)
		require.NoError(t, os.Chown(folder, uid, -1))
		arguments = append(arguments, "-u", "postgres")
	}
	pooler := exec.Command(program, arguments...)
	require.NoError(t, pooler.Start())
	t.Cleanup(func() {
		_ = pooler.Process.Kill()
		_ = pooler.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("unix", filepath.Join(folder, ".s.PGSQL.6432"))
		return err == nil && conn.Close() == nil
	}, soon, 10*time.Millisecond)
	server.User = url.User("postgres")
	server.RawQuery = url.Values{"host": {folder}, "port": {"6432"}, "connect_timeout": {"60"}}.Encode()
	return server.String()
}

// A pooler that gives sessions away after each transaction is refused, and nothing is left in them.
func TestPoolerThatGivesSessionsAwayIsRefused(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"", "default_pool_size = 1", "server_round_robin = 1"} {
		address := postgresAddress(t)
		pooler := pooled(t, address, "pool_mode = transaction\n"+settings)
		for range 3 {
			_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: pooler})
			unusable := (*sqlsink.UnusableError)(nil)
			require.ErrorAs(t, err, &unusable)
			require.Contains(t, unusable.Error(), "gives sessions to other clients after each transaction")
			require.Contains(t, unusable.Remedy, "pool_mode = session")
		}
		require.Equal(t, []string{"<nil>"}, query(t, address, `SELECT to_regclass('objects')`))
		require.Equal(t, []string{"0"}, query(t, pooler, `SELECT current_setting('lock_timeout')`))
	}
}

// A pooler that keeps sessions is as good as the server.
func TestPoolerThatKeepsSessions(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	pooler := pooled(t, address, "pool_mode = session")
	sink := opened(t, sqlsink.Config{Address: pooler})
	here := sink.Place("here", pods)
	require.NoError(t, write(t.Context(), here, put("a", "10"), put("b", "11")))
	require.NoError(t, write(t.Context(), here, gone("a")))
	require.Equal(t, map[string]string{"ns/b": "11"}, stored(t, here))
	_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address})
	require.ErrorContains(t, err, "another writer has it")
}
