package sqlsink_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
)

// parameters are all those of libpq that an address may have beside host, port, dbname, user and
// password, with values that go with a server of a test.
var parameters = map[string]string{
	"passfile": "/dev/null", "require_auth": "none", "channel_binding": "prefer", "connect_timeout": "60",
	"client_encoding": "UTF8", "options": "-c geqo=off", "application_name": "mine", "fallback_application_name": "its",
	"keepalives": "1", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "10000",
	"sslmode": "disable", "sslnegotiation": "postgres", "sslcompression": "0", "sslsni": "1", "ssl_min_protocol_version": "TLSv1.2",
	"ssl_max_protocol_version": "TLSv1.3", "min_protocol_version": "3.0", "max_protocol_version": "3.0", "gssencmode": "disable", "krbsrvname": "postgres", "gsslib": "gssapi",
	"gssdelegation": "0", "target_session_attrs": "any", "load_balance_hosts": "disable", "search_path": "public", "pool_max_conns": "4",
}

// An address may have the parameters of libpq.
func TestParametersOfLibpq(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	all := address
	for name, value := range parameters {
		if !strings.Contains(address, name+"=") {
			all += "&" + name + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
		}
	}
	sink := opened(t, sqlsink.Config{Address: all})
	require.NoError(t, write(t.Context(), sink.Place("here", pods), put("a", "10")))
	require.Equal(t, []string{"mine"}, query(t, address, `SELECT DISTINCT application_name FROM pg_stat_activity WHERE application_name <> '' AND datname = current_database()`))
}

// What cannot be had is refused by its name.
func TestParametersThatAreNotSupported(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"hostaddr": "127.0.0.1", "sslcrl": "/tmp/crl", "requirepeer": "postgres", "gssencmode": "require",
		"ssl_min_protocol_version": "TLSv9", "replication": "true"} {
		_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: "host=127.0.0.1 port=1 dbname=db " + name + "=" + value})
		require.ErrorContains(t, err, "the parameter "+name+" of the address")
	}
}

// A database in memory is refused with words that say what to do, and no file is made.
func TestSQLiteInMemoryIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, address := range []string{"sqlite::memory:", "sqlite:file::memory:"} {
		_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address})
		require.ErrorContains(t, err, "a SQLite database in memory has one connection, and this program needs several: name a file")
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, open(t, sqlsink.Config{Address: "sqlite:" + filepath.Join(".", "a.db")}).Close())
	require.NoError(t, open(t, sqlsink.Config{Address: "sqlite:./a=b.db"}).Close())
}
